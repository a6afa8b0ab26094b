#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every fuzz target once over its stored inputs and over the test cases.
top=$(dirname "$0")/..
ran=0
failed=0
for target in ./tests/fuzz/fuzz_*; do
    if [ ! -x "$target" ] || [ ! -f "$target" ]; then
        continue
    fi
    name=${target##*/fuzz_}
    inputs=$(find "$top/tests/fuzz/corpus/$name" "$top/tests/cases/http1" \
        -type f 2> /dev/null)
    ran=$((ran + 1))
    # shellcheck disable=SC2086 # one file name a word; none holds a blank
    "$target" $inputs > /dev/null ||
        { echo "$target failed"; failed=$((failed + 1)); }
done
echo "fuzz-replay: $ran targets, $failed failed"
[ "$ran" -gt 0 ] || exit 77
[ "$failed" -eq 0 ]
