#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the hard rules of HACKING.md on every source: 700 lines a file, 70 a
# function, 80 columns, no tabs, no blanks at a line's end, the licence line,
# and no file named for nothing (util, misc, common, helper).
#
# tests/style-exceptions.txt may list "RULE PATH" where a rule makes the code
# worse. The list may only shrink: an entry that is not needed any more fails,
# and so does a list longer than EXCEPTIONS_MAX.
EXCEPTIONS_MAX=0
LC_ALL=C
export LC_ALL
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
list=tests/style-exceptions.txt
files=$(find lib simd backends tools bench tests -name '*.[ch]' | sort)
all=$(find lib simd backends tools bench tests -type f |
    grep -v '^tests/cases/' | grep -v '^tests/corpus/')

# Prints "RULE PATH LINE TEXT" for each breach.
find_breaches()
{
    for file in $files; do
        awk -v file="$file" '
        function say(rule, line, text)
        {
            printf "%s %s %d %s\n", rule, file, line, text
        }
        FNR == 1 && !/SPDX-License-Identifier: MIT/ {
            say("licence", 1, "the first line is not the licence line")
        }
        /\t/ { say("tab", FNR, "a tab") }
        /[ \t\r]$/ { say("blank", FNR, "blanks at the end") }
        length($0) > 80 { say("columns", FNR, length($0) " columns") }
        /^\{/ { start = FNR }
        /^\}/ && start {
            if (FNR - start + 1 > 70)
                say("function", start, FNR - start + 1 " lines of function")
            start = 0
        }
        END {
            if (FNR > 700)
                say("file", FNR, FNR " lines")
        }' "$file"
    done
    for file in $all; do
        case /$file in
        */util* | */misc* | */common* | */helper*)
            echo "name $file 1 says nothing about what is in it" ;;
        esac
    done
}

entries=
if [ -f $list ]; then
    entries=$(grep -v '^#' $list | grep .)
fi
entry_count=$(printf '%s' "$entries" | grep -c .)

export entries
find_breaches | awk -v max=$EXCEPTIONS_MAX -v entry_count="$entry_count" \
    -v list=$list '
BEGIN {
    count = split(ENVIRON["entries"], entry, "\n")
    for (i = 1; i <= count; i++)
        excepted[entry[i]] = 1
}
{
    key = $1 " " $2
    if (key in excepted) {
        used[key] = 1
        next
    }
    place = $2 ":" $3
    rule = $1
    $1 = $2 = $3 = ""
    sub(/^ +/, "")
    printf "%s: %s (%s)\n", place, $0, rule
    failed++
}
END {
    for (key in excepted)
        if (!(key in used)) {
            printf "%s: not needed any more: %s\n", list, key
            failed++
        }
    if (entry_count > max) {
        printf "%s: %d entries, %d allowed\n", list, entry_count, max
        failed++
    }
    printf "check-style: %d failed\n", failed
    exit failed > 0
}'
