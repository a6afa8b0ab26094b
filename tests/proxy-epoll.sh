#!/bin/sh
# SPDX-License-Identifier: MIT
# myra-proxy from outside, on epoll.
run=$(dirname "$0")/with-backend.sh
"$run" epoll ./tests/proxy_test || exit
"$run" epoll ./tests/proxy_fault_test || exit
exec "$run" epoll ./tests/proxy_flow_test
