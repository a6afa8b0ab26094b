# SPDX-License-Identifier: MIT
# Prints the name of every function that a public header marks MYRA_API; with
# -v data=1, of the variables too.
{
    text = text " " $0
}
END {
    # Comments go first; the headers hold none of the other kind.
    while ((start = index(text, "/*")) > 0) {
        rest = substr(text, start + 2)
        end = index(rest, "*/")
        text = substr(text, 1, start - 1) " " substr(rest, end + 2)
    }
    count = split(text, statement, ";")
    for (i = 1; i <= count; i++) {
        if (!match(statement[i], /MYRA_API[^A-Z_a-z0-9]/))
            continue
        rest = substr(statement[i], RSTART)
        if (match(rest, /myra_[a-z0-9_]+ *\(/)) {
            name = substr(rest, RSTART, RLENGTH)
            sub(/ *\($/, "", name)
            print name
        } else if (data && match(rest, /myra_[a-z0-9_]+/)) {
            print substr(rest, RSTART, RLENGTH)
        }
    }
}
