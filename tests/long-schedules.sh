#!/bin/sh
# SPDX-License-Identifier: MIT
# long-schedules.sh COUNT: runs COUNT schedules of random operations on each
# backend, and COUNT of injected faults on the ring. Started by make check-long
# in the build directory; a backend that cannot serve here is passed over.
MYRA_SCHEDULES=$1
export MYRA_SCHEDULES
here=$(dirname "$0")
status=0
for backend in epoll uring-token; do
    "$here/with-backend.sh" $backend ./tests/backend_conformance \
        --filter 'storm/random*'
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || status=1
done
if [ -x ./tests/uring_schedule_test ]; then
    "$here/with-backend.sh" uring-token ./tests/uring_schedule_test
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || status=1
fi
exit $status
