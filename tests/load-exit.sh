#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Exit statuses of myra-load and myra-bench that need no server: usage, help,
# a target where nobody listens.
failed=0

expect() {
    want=$1
    shift
    "$@" > /dev/null 2>&1
    got=$?
    if [ "$got" != "$want" ]; then
        echo "exit $got, not $want: $*"
        failed=$((failed + 1))
    fi
}

expect 0 ./myra-load --help
expect 0 ./myra-load --version
expect 2 ./myra-load
expect 2 ./myra-load --no-such-option http://127.0.0.1/
expect 2 ./myra-load http://127.0.0.1/ http://127.0.0.1/
expect 2 ./myra-load https://127.0.0.1/
expect 2 ./myra-load -r 0 http://127.0.0.1:1/
expect 2 ./myra-load -c 0 http://127.0.0.1:1/
expect 2 ./myra-load -t soon http://127.0.0.1:1/
expect 2 ./myra-load -H 'no colon' http://127.0.0.1:1/
expect 2 ./myra-load --fail-if 'p99>500' http://127.0.0.1:1/
expect 2 ./myra-load -d @/no/such/file http://127.0.0.1:1/
expect 2 env MYRA_BACKEND=none ./myra-load http://127.0.0.1:1/
# Port 1 is tcpmux: nobody listens there.
expect 1 ./myra-load -q -t 100ms http://127.0.0.1:1/

expect 0 ./myra-bench --help
expect 0 ./myra-bench --version
expect 2 ./myra-bench
expect 2 ./myra-bench no-such-table
expect 2 ./myra-bench pool alloc

[ "$failed" = 0 ]
