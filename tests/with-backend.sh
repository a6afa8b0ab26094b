#!/bin/sh
# SPDX-License-Identifier: MIT
# with-backend.sh BACKEND COMMAND...: runs COMMAND with MYRA_BACKEND set, or
# exits 77 (skipped) when this build or this machine cannot serve BACKEND.
# Started by the scripts beside it, in the build directory.
backend=$1
shift
if [ ! -x "$1" ]; then
    echo "$1 was not built"
    exit 77
fi
if ! reason=$(MYRA_BACKEND=$backend ./tests/backend_probe 2>&1); then
    echo "$backend cannot serve here: $reason"
    exit 77
fi
echo "$reason"
MYRA_BACKEND=$backend
export MYRA_BACKEND
exec "$@"
