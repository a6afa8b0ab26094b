#!/bin/sh
# SPDX-License-Identifier: MIT
# The parser's and the proxy's tests once more without vector kernels.
MYRA_SIMD=0
export MYRA_SIMD
ran=0
failed=0
for test in ./tests/http_*_test ./tests/kernels_check; do
    [ -x "$test" ] || continue
    ran=$((ran + 1))
    "$test" || failed=$((failed + 1))
done
if [ -x ./tests/run-cases ]; then
    ran=$((ran + 1))
    ./tests/run-cases "$(dirname "$0")/cases/http1" || failed=$((failed + 1))
fi
echo "scalar: $ran programs, $failed failed"
[ "$ran" -gt 0 ] || exit 77
[ "$failed" -eq 0 ]
