#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that every file includes only what LAYERS allows its folder, and a
# few facts of the same kind: who names a backend, who reads the environment,
# who includes liburing. Prints each breach with file and line.
LC_ALL=C
export LC_ALL
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
failed=0
checked=0

files=$(find lib simd backends tools bench -name '*.[ch]' | sort)
for file in $files; do
    checked=$((checked + 1))
    awk -v file="$file" '
    function fail(line, text)
    {
        printf "%s:%d: %s\n", file, line, text
        bad = 1
    }
    function folder_of(path)
    {
        if (path !~ /\//)
            return ""
        sub(/\/[^\/]*$/, "", path)
        return path
    }
    # LAYERS comes first: the line of the longest folder that holds file.
    FILENAME == "LAYERS" {
        if ($0 ~ /^#/ || $0 !~ /:/)
            next
        name = $1
        sub(/:$/, "", name)
        if (index(file, name "/") == 1 && length(name) > length(own)) {
            own = name
            count = 0
            for (i = 2; i <= NF; i++)
                allowed[++count] = $i
        }
        next
    }
    FNR == 1 && own == "" && file !~ /^lib\/include\// {
        fail(1, "its folder has no line in LAYERS")
    }
    !/^[ \t]*#[ \t]*include/ { next }
    /</ {
        name = $0
        sub(/^[^<]*</, "", name)
        sub(/>.*$/, "", name)
        if (name ~ /^(liburing|linux\/io_uring)/ && own != "backends/uring")
            fail(FNR, "only backends/uring may include <" name ">")
        if (name !~ /^myra\//)
            next
        if (file ~ /^lib\/include\// ||
            name ~ /^myra\/(export|err|alloc|version)\.h$/)
            next
        for (i = 1; i <= count; i++)
            if (allowed[i] == name || allowed[i] == "myra/*" ||
                allowed[i] == "*")
                next
        fail(FNR, "LAYERS does not allow " own " to include <" name ">")
        next
    }
    {
        name = $0
        sub(/^[^"]*"/, "", name)
        sub(/".*$/, "", name)
        if (file ~ /^lib\/include\//) {
            fail(FNR, "a public header may not include \"" name "\"")
            next
        }
        if (name == "config.h")
            next
        folder = folder_of(name)
        if (folder == "") {
            # A name alone is a file of the same folder.
            if ((getline line < (folder_of(file) "/" name)) < 0)
                fail(FNR, "write the path from the top: \"" name "\"")
            close(folder_of(file) "/" name)
            next
        }
        if (folder == own)
            next
        for (i = 1; i <= count; i++)
            if (allowed[i] == name || allowed[i] == folder ||
                allowed[i] == "*")
                next
        fail(FNR, "LAYERS does not allow " own " to include \"" name "\"")
    }
    END { exit bad }
    ' LAYERS "$file" || failed=$((failed + 1))
done

# only_in PATTERN WHERE WHAT: no code line but those of WHERE may match.
only_in()
{
    # shellcheck disable=SC2086 # one file a word
    found=$(grep -nE "$1" $files | grep -vE "^($2)")
    if [ -n "$found" ]; then
        echo "$found"
        echo "    $3"
        failed=$((failed + 1))
    fi
}

only_in '[^a-z_](secure_)?getenv *\(' 'lib/base/env\.c|tools/|bench/' \
    'the library reads the environment in lib/base/env.c alone'
only_in 'myi_backend_(epoll|uring_token)' \
    'lib/net/backend_list\.c|backends/' \
    'lib/net/backend_list.c alone names the backends'
only_in '[^a-z_](v?f?printf|puts|fputs|perror) *\(' \
    'tools/|bench/|lib/base/pool_abort\.c' \
    'the library never prints'

echo "check-layers: $checked files, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
