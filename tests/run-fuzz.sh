#!/bin/sh
# SPDX-License-Identifier: MIT
# run-fuzz.sh [SECONDS] [BUILD-DIRECTORY]: builds every fuzz target with
# clang, libFuzzer, ASan and UBSan, runs each for SECONDS (60), and prints
# "fuzz: N passed, N failed". What a run finds is kept in the build directory.
seconds=${1:-60}
build=${2:-fuzz-build}
top=$(cd "$(dirname "$0")/.." && pwd) || exit 2
command -v clang > /dev/null ||
    { echo "clang was not found: nothing was fuzzed"; exit 77; }
mkdir -p "$build" && cd "$build" || exit 2

if [ ! -f Makefile ]; then
    "$top/configure" -q CC=clang --enable-fuzz --disable-shared \
        --enable-sanitize=address,undefined --without-libuv \
        > configure.out 2>&1 || { cat configure.out; exit 1; }
fi
targets=$(find "$top/tests/fuzz" -name 'fuzz_*.c' | sort |
    sed 's,.*/,,; s/\.c$//')
for name in $targets; do
    make -s "tests/fuzz/$name" > make.out 2>&1 || { cat make.out; exit 1; }
done

passed=0
failed=0
for name in $targets; do
    seeds=
    for folder in "$top/tests/fuzz/corpus/${name#fuzz_}" \
        "$top/tests/cases/http1"; do
        [ -d "$folder" ] && seeds="$seeds $folder"
    done
    mkdir -p "found/$name"
    # shellcheck disable=SC2086 # one folder a word
    if "./tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="found/$name-" "found/$name" $seeds \
        > "$name.out" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' \
            "$name.out") runs, clean"
    else
        failed=$((failed + 1))
        tail -n 40 "$name.out"
        echo "$name: failed, see $build/$name.out"
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
