#!/bin/sh
# SPDX-License-Identifier: MIT
# run-cases must fail what is wrong: every row with its expectation turned
# round, its values changed, or a key or kind that nobody knows. Started in
# the build directory.
top=$(cd "$(dirname "$0")/.." && pwd)
cases=$top/tests/cases/http1
run=./tests/run-cases
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAIL: $1"
    failures=$((failures + 1))
}

# folder NAME AWK-PROGRAM: a folder with the table that the program writes.
folder() {
    mkdir "$work/$1"
    for file in "$cases"/*.http; do
        ln -s "$file" "$work/$1/"
    done
    awk -F '\t' -v OFS='\t' "$2" "$cases/cases.tsv" >"$work/$1/cases.tsv"
}

# all_fail NAME: no row of the folder may pass, and there must be rows.
all_fail() {
    "$run" "$work/$1" >"$work/$1.out" 2>&1
    status=$?
    rows=$(($(wc -l <"$work/$1/cases.tsv") - 1))
    last=$(tail -n 1 "$work/$1.out")
    [ "$rows" -gt 0 ] || fail "$1: no rows"
    [ "$status" -eq 1 ] || fail "$1: exit status $status"
    [ "$last" = "0 passed, $rows failed" ] ||
        fail "$1: $last, of $rows rows that must fail"
}

folder turned 'NR == 1 { print; next }
    $3 == "accept" { $3 = "reject"; print; next }
    $3 == "reject" { $3 = "accept"; print }'
all_fail turned

# The first value of each accept row with one byte more.
folder body 'NR == 1 { print; next }
    $3 == "accept" && $7 ~ /body1=/ {
        sub(/body1=/, "body1=~", $7); print }'
all_fail body
folder target 'NR == 1 { print; next }
    $7 ~ /target[0-9]=/ { sub(/target[0-9]=/, "&~", $7); print }'
all_fail target
folder count 'NR == 1 { print; next }
    $3 != "either" && $7 ~ /msgs=/ { sub(/msgs=/, "msgs=1", $7); print }'
all_fail count
folder keep 'NR == 1 { print; next }
    $7 ~ /keep=1/ { sub(/keep=1/, "keep=0", $7); print; next }
    $7 ~ /keep=0/ { sub(/keep=0/, "keep=1", $7); print }'
all_fail keep
folder status 'NR == 1 { print; next }
    $3 == "reject" && $4 != "" {
        $4 = 418; sub(/;?status_also=[0-9,]*/, "", $7); print }'
all_fail status

# What nobody knows.
folder kind 'NR == 1 { print; next } { $2 = "websocket"; print }'
all_fail kind
folder key 'NR == 1 { print; next } { $7 = $7 ";colour=red"; print }'
all_fail key
folder never 'NR == 1 { print; next }
    $7 !~ /never=/ { $7 = $7 ";never=sing"; print }'
all_fail never
folder short 'NR == 1 { print; next } NR < 9 { print $1, $2, $3 }'
all_fail short
folder file 'NR == 1 { print; next } NR < 9 { $1 = "none-" $1; print }'
all_fail file

# No table, or none of this kind; and a table without rows is no success.
mkdir "$work/none"
"$run" "$work/none" >/dev/null 2>&1
[ $? -eq 2 ] || fail "no cases.tsv: exit status is not 2"
folder empty 'NR == 1'
"$run" "$work/empty" >"$work/out" 2>&1
[ $? -eq 1 ] || fail "no rows: exit status is not 1"
[ "$(tail -n 1 "$work/out")" = "0 passed, 0 failed" ] || fail "no rows: output"
"$run" "$cases" req-get-min.http >"$work/out" 2>&1 ||
    fail "a right row does not pass"
[ "$(tail -n 1 "$work/out")" = "1 passed, 0 failed" ] ||
    fail "a right row: output"

exit $((failures > 0))
