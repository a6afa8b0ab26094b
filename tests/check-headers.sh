#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles each public header alone, as C11 and as C++17, warnings as errors
# and without _GNU_SOURCE: a user includes one header and needs no other.
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 99
build=$PWD
[ -f Makefile ] || { echo "run this in the build directory"; exit 99; }
CC=$(sed -n 's/^CC = //p' Makefile)
CXX=${CXX:-c++}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
checked=0

# compile_alone HEADER COMPILER LANGUAGE STANDARD
compile_alone()
{
    checked=$((checked + 1))
    printf '#include <myra/%s>\n#include <myra/%s>\nextern int alone;\n' \
        "$1" "$1" > "$work/alone.$3"
    if ! $2 -x "$3" -std="$4" -Wall -Wextra -Wshadow -pedantic -Werror \
        -I "$top/lib/include" -I "$build/lib/include" \
        -fsyntax-only "$work/alone.$3"; then
        echo "<myra/$1> does not compile alone with $4"
        failed=$((failed + 1))
    fi
}

names=$(cd "$top/lib/include/myra" &&
    find . -name '*.h' ! -name version.h | sed 's,^\./,,' | sort)
for name in $names version.h; do
    compile_alone "$name" "$CC" c c11
    if command -v "$CXX" > /dev/null; then
        compile_alone "$name" "$CXX" c++ c++17
    fi
    # A guard named after the file.
    guard=MYRA_$(echo "$name" | sed 's/\.h$//' | tr 'a-z-' 'A-Z_')_H
    file=$top/lib/include/myra/$name
    [ -f "$file" ] || file=$build/lib/include/myra/$name
    if ! grep -q "^#ifndef $guard\$" "$file"; then
        echo "<myra/$name> has no guard $guard"
        failed=$((failed + 1))
    fi
done
command -v "$CXX" > /dev/null || echo "no C++ compiler: C11 only"
echo "check-headers: $checked compiled, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
