#!/usr/bin/env bash
# What a program of unit tests does with its arguments, shown by one with cases that fail.
#   tests/groups.sh PROGRAM
set -euo pipefail
program=$1
unset PHEMA_SLOW

run() { # ARGUMENT...: the cases that ran, with their results, and the status, sorted
    local status=0 output
    output=$("$program" "$@" 2>&1) || status=$?
    { # cmocka names failed cases twice
        sed -nE 's/^\[ *(OK|FAILED|SKIPPED) *\] ([a-z_]+)$/\1 \2/p; /ended by|groups,|expected/p' <<<"$output"
        echo "status $status"
    } | LC_ALL=C sort -u
}
expect() { # WANTED ARGUMENT...
    local wanted=$1 got
    shift
    got=$(run "$@")
    wanted=$(LC_ALL=C sort -u <<<"$wanted")
    [ "$got" = "$wanted" ] || {
        printf 'tests/groups.sh: %s\n--- expected\n%s\n--- found\n%s\n' "$*" "$wanted" "$got" >&2
        exit 1
    }
}

[ "$("$program" --list)" = 'bad.fails
bad.ends_its_process
bad.passes
good.passes
good.slow_passes' ] || {
    echo "tests/groups.sh: another list" >&2
    exit 1
}
expect 'OK passes
SKIPPED slow_passes
status 0' good
PHEMA_SLOW=1 expect 'OK passes
OK slow_passes
status 0' good
expect 'OK slow_passes
status 0' slow_passes
expect 'FAILED fails
status 1' fails
expect 'FAILED fails
OK passes
status 1' bad.passes fails
expect 'OK passes
2 groups, 0 failed
status 0' passes
expect 'FAILED fails
OK passes
2 groups, 1 failed
status 1' fails good.passes
# cases after the one that ends the process do not run, other groups do
expect 'FAILED fails
bad: ended by signal 9
OK passes
SKIPPED slow_passes
2 groups, 1 failed
status 1'
for name in goo good. good.fails passe; do
    expect "sample_groups: expected a group or a case of --list, found '$name'
status 2" good "$name"
done
