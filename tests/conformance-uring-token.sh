#!/bin/sh
# SPDX-License-Identifier: MIT
# The backend conformance suite on uring-token.
exec "$(dirname "$0")/with-backend.sh" uring-token ./tests/backend_conformance
