#!/bin/sh
# SPDX-License-Identifier: MIT
# Every row of tests/cases/http1 on epoll.
top=$(dirname "$0")/..
exec "$top/tests/with-backend.sh" epoll ./tests/run-cases "$top/tests/cases/http1"
