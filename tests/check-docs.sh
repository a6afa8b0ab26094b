#!/bin/sh
# SPDX-License-Identifier: MIT
# Every function of the headers has a .Nm in lib/man and none is there that
# does not exist; every .Xr to a page of this tree has its page; every program
# has a man page; each EXAMPLES block and the README's C compiles; mandoc,
# where it is installed, finds nothing to say.
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 99
build=$PWD
[ -f Makefile ] || { echo "run this in the build directory"; exit 99; }
CC=$(sed -n 's/^CC = //p' Makefile)
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0
compiled=0
pages=$(find "$top/lib" "$top/tools" "$top/bench" -name '*.[1-9]' | sort)

fail()
{
    echo "$*"
    failed=$((failed + 1))
}

# ---- Functions
for header in "$top"/lib/include/myra/*.h "$top"/lib/include/myra/*.h.in; do
    case $header in */version.h) continue ;; esac
    awk -f "$top/tests/public-names.awk" "$header"
done | sort -u > "$work/functions"
sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \(myra_[a-z0-9_]*\).*/\1/p' \
    "$top"/lib/man/*.3 | sort > "$work/names"
uniq -d "$work/names" | sed 's/$/ has two man pages/' > "$work/twice"
for name in $(comm -23 "$work/functions" "$work/names"); do
    fail "$name has no man page"
done
for name in $(comm -13 "$work/functions" "$work/names"); do
    fail "$name has a man page and no declaration"
done
[ ! -s "$work/twice" ] || fail "$(cat "$work/twice")"

# ---- References and programs
for page in $pages; do
    # shellcheck disable=SC2013 # one reference a word
    for reference in $(sed -n 's/^\.Xr \([^ ]*\) \([1-9]\).*/\1.\2/p' \
        "$page"); do
        case $reference in
        myra*)
            echo "$pages" | grep -q "/$reference\$" ||
                fail "$page: dead reference to $reference" ;;
        esac
    done
done
# shellcheck disable=SC2013 # one program a word
for program in $(sed -n 's/^bin_PROGRAMS += *//p' "$top"/tools/include.am \
    "$top"/bench/include.am); do
    echo "$pages" | grep -q "/$program\\.1\$" ||
        fail "$program has no man page"
done

# ---- Code
# compile FILE WHERE: a whole program, to be linked too.
compile()
{
    compiled=$((compiled + 1))
    # shellcheck disable=SC2086 # the compiler may have arguments
    $CC -std=c11 -Wall -Wextra -Werror -I "$top/lib/include" \
        -I "$build/lib/include" -fsyntax-only "$1" ||
        fail "$2: an example does not compile"
}

# Each literal block of the EXAMPLES section with a main is a program.
for page in "$top"/lib/man/*.3; do
    awk -v base="$work/example" '
    /^\.Sh / { inside = ($2 == "EXAMPLES") }
    inside && /^\.Bd -literal/ { count++; in_block = 1; next }
    /^\.Ed/ { in_block = 0 }
    in_block { print > (base "-" count ".c") }' "$page"
    for file in "$work"/example-*.c; do
        [ -f "$file" ] || continue
        sed 's/\\&//g; s/\\(aq/'"'"'/g; s/\\e/\\/g' "$file" \
            > "$work/program.c"
        compile "$work/program.c" "$page"
        rm -f "$file"
    done
done
awk -v base="$work/readme" '
    /^```c$/ { count++; in_block = 1; next }
    /^```$/ { in_block = 0 }
    in_block { print > (base "-" count ".c") }' "$top/README.md"
for file in "$work"/readme-*.c; do
    [ -f "$file" ] || continue
    compile "$file" README.md
done

# ---- Form
if command -v mandoc > /dev/null; then
    for page in $pages; do
        mandoc -T lint -W warning "$page" > "$work/lint" 2>&1 ||
            fail "$(cat "$work/lint")"
    done
else
    echo "mandoc is not installed: the pages' form was not checked"
fi

echo "check-docs: $(wc -l < "$work/functions") functions," \
    "$(echo "$pages" | wc -l) pages, $compiled programs, $failed failed"
[ -s "$work/functions" ] && [ "$compiled" -gt 0 ] && [ "$failed" -eq 0 ]
