#!/bin/sh
# SPDX-License-Identifier: MIT
# What `myra inspect` prints and how it ends. Started in the build directory.
myra=./myra
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME STATUS INPUT ARGUMENTS...: runs inspect on the bytes (printf
# form) and keeps what it prints in $out, without line ends and indentation.
expect() {
    name=$1
    wanted=$2
    printf "$3" >"$work/in"
    shift 3
    "$myra" inspect "$@" "$work/in" >"$work/out" 2>"$work/err"
    status=$?
    out=$(tr -d '\n' <"$work/out" | sed 's/  */ /g')
    if [ "$status" -ne "$wanted" ]; then
        echo "FAIL: $name: exit status $status, not $wanted"
        cat "$work/err"
        failures=$((failures + 1))
    fi
}

# has TEXT: the output of the last run holds the text.
has() {
    case $out in
    *"$1"*) ;;
    *)
        printf 'FAIL: %s: no %s in %s\n' "$name" "$1" "$out"
        failures=$((failures + 1))
        ;;
    esac
}

# says TEXT: the last run complained with the text.
says() {
    if ! grep -q -e "$1" "$work/err"; then
        echo "FAIL: $name: no '$1' in: $(cat "$work/err")"
        failures=$((failures + 1))
    fi
}

head='Host: a.test\r\n'

expect get 0 "GET /p?q HTTP/1.1\r\n$head\r\n" request
has '"verdict": "accept"'
has '"status": null'
has '"method": "GET", "target": "/p?q", "version": "1.1"'
has '{"name": "Host", "value": "a.test"}'
has '"framing": "none"'
has '"keep_alive": true'

expect bytes 0 "POST / HTTP/1.1\r\n${head}X: \"\\\\\\351\r\nContent-Length: 4\r\n\r\n\\000%%\\377\n" request
has '"value": "\"\\\u00e9"'
has '"body": "\u0000%\u00ff\n", "body_len": 4'
has '"framing": "length", "content_length": 4'

expect two 0 "POST /1 HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: v\r\n\r\nGET /2 HTTP/1.0\r\n\r\n" \
    request --feed bytes
has '"body": "ab"'
has '"trailers": [ {"name": "X-T", "value": "v"} ]'
has '"target": "/2", "version": "1.0"'
has '"keep_alive": false'

expect refused 1 "GET / HTTP/1.1\r\n$head\r\nGET / HTTP/1.1\r\n\r\n" request
has '"verdict": "reject", "status": 400'
has '"name": "MYRA_HTTP_HOST"'
has '"reason": "Host is missing'

expect offset 1 "GET / HTTP/1.1\r\n${head}B@d: x\r\n\r\n" request
has '"offset": 31, "code": -5207'

expect incomplete 1 "POST / HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nhel" request
has '"verdict": "incomplete"'
has '"partial": {'
has '"body": "hel"'
expect truncated 1 "POST / HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nhel" request --eof
has '"verdict": "reject"'
has '"name": "MYRA_ETRUNCATED"'

expect limit 1 "POST / HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nhello" request --limit 4
has '"status": 413'
expect limit-right 0 "POST / HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nhello" request --limit=5

expect tunnel 0 "CONNECT a.test:443 HTTP/1.1\r\n$head\r\n\\026\\003" request
has '"tunnel": "\u0016\u0003"'

expect head 0 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 \r\n\r\n' \
    response --for HEAD,GET
has '"status": 204, "reason": ""'
expect extra 1 'HTTP/1.1 204 X\r\n\r\nHTTP/1.1 204 X\r\n\r\n' response --for GET
has 'bytes behind the answer'
expect owed 1 'HTTP/1.1 204 X\r\n\r\n' response --for GET,GET
has '"verdict": "incomplete"'
expect until-close 0 'HTTP/1.1 200 OK\r\n\r\nrest' response --eof
has '"framing": "close"'
expect upgrade 0 'HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nab' response
has '"tunnel": "ab"'
expect no-upgrade 1 'HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nab' \
    response --no-upgrade
has '"status": 502'

expect chunked 0 '3;a=b\r\nabc\r\n0\r\n\r\nGET /' chunked --feed cut:7
has '"body": "abc", "body_len": 3'
has '"leftover": "GET /"'
expect chunked-bad 1 'g\r\n' chunked
has '"offset": 0'

expect kind 2 '' teapot
says "unknown kind 'teapot'"
expect option 2 '' request --fro
says "unknown option '--fro'"
expect for 2 '' response --for GET,,GET
says '--for takes methods'
expect for-request 2 '' request --for GET
says 'belong to response'
expect feed 2 '' request --feed cut:x
says '--feed takes whole, bytes or cut:N'
expect zero 2 '' request --limit 0
says '--limit takes a number'
expect role 2 '' request --role king
says '--role is client, server or proxy'
expect role-right 0 "GET / HTTP/1.1\r\n$head\r\n" request --role proxy
expect ext 2 '' request --ext permessage-deflate
says 'extensions'

"$myra" inspect request "$work/nothing" >/dev/null 2>"$work/err"
status=$?
name=missing
says 'No such file'
[ $status -eq 2 ] || { echo "FAIL: a missing file"; failures=1; }
printf 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' | "$myra" inspect request - \
    >"$work/out" || { echo "FAIL: standard input"; failures=1; }
grep -q '"accept"' "$work/out" || { echo "FAIL: standard input"; failures=1; }

"$myra" inspct 2>"$work/err"
status=$?
name=slip
says "did you mean 'inspect'"
[ $status -eq 2 ] || { echo "FAIL: an unknown verb"; failures=1; }
"$myra" --help | grep -q '^  inspect' || { echo "FAIL: --help"; failures=1; }
"$myra" --version | grep -q '^myra [0-9]' || { echo "FAIL: --version"; failures=1; }
"$myra" inspect --help | grep -q 'KIND FILE' || { echo "FAIL: inspect --help"; failures=1; }

exit $((failures > 0))
