#!/bin/sh
# SPDX-License-Identifier: MIT
# Every row of tests/cases/forward on uring-token.
top=$(dirname "$0")/..
exec "$top/tests/with-backend.sh" uring-token ./tests/run-cases "$top/tests/cases/forward"
