#!/bin/sh
# SPDX-License-Identifier: MIT
# myra-proxy from outside, on uring-token.
run=$(dirname "$0")/with-backend.sh
"$run" uring-token ./tests/proxy_test || exit
"$run" uring-token ./tests/proxy_fault_test || exit
exec "$run" uring-token ./tests/proxy_flow_test
