#!/bin/sh
# SPDX-License-Identifier: MIT
# What the headers mark MYRA_API, the names in lib/libmyra.map
# and the symbols that libmyra.so exports must be one and the same set; and
# the programs may call nothing else.
LC_ALL=C
export LC_ALL
top=$(cd "${srcdir:-$(dirname "$0")/..}" && pwd) || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

# compare NAME_A NAME_B: both files hold sorted names.
compare()
{
    if ! cmp -s "$work/$1" "$work/$2"; then
        comm -23 "$work/$1" "$work/$2" | sed "s/^/in $1, not in $2: /"
        comm -13 "$work/$1" "$work/$2" | sed "s/^/in $2, not in $1: /"
        failed=$((failed + 1))
    fi
}

for header in "$top"/lib/include/myra/*.h "$top"/lib/include/myra/*.h.in; do
    case $header in */version.h) continue ;; esac
    awk -v data=1 -f "$top/tests/public-names.awk" "$header"
done | sort -u > "$work/headers"
sed -n 's/^ *\(myra_[a-z0-9_]*\);.*/\1/p' "$top/lib/libmyra.map" |
    sort > "$work/map"
sort -u "$work/map" | cmp -s - "$work/map" ||
    { echo "lib/libmyra.map names a symbol twice"; failed=1; }
if grep -q '^ *[a-z_]*\*;' "$top/lib/libmyra.map" &&
    ! grep -q '^ *\*;' "$top/lib/libmyra.map"; then
    echo "lib/libmyra.map exports by pattern"
    failed=1
fi
compare headers map

if [ -f .libs/libmyra.so ]; then
    nm -D --defined-only .libs/libmyra.so |
        awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
        sort > "$work/library"
    compare headers library
else
    echo "no shared library in this build: headers and map only"
fi

# Objects of the programs use public names only.
objects=$(find tools bench -name '*.o' 2> /dev/null)
if [ -n "$objects" ]; then
    # shellcheck disable=SC2086 # one name a word
    nm -u $objects 2> /dev/null | awk '$1 == "U" { print $2 }' |
        grep -E '^my(ra|i)_' | sort -u > "$work/wanted"
    # shellcheck disable=SC2086
    nm --defined-only $objects 2> /dev/null |
        awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u > "$work/own"
    comm -23 "$work/wanted" "$work/own" | comm -23 - "$work/headers" \
        > "$work/private"
    if [ -s "$work/private" ]; then
        sed 's/^/a program uses a private name: /' "$work/private"
        failed=$((failed + 1))
    fi
fi

echo "check-abi: $(wc -l < "$work/headers") names, $failed failed"
[ -s "$work/headers" ] && [ "$failed" -eq 0 ]
