#!/usr/bin/env bash
# Prints the completions of bash for command lines: calls the function that the script installs as
# readline does, with words split as readline splits them.
#   tests/completions/complete.bash SCRIPT <LINES     a line of words for each
set -u
# shellcheck source=/dev/null
source "$1"
compopt() { :; } # is only for a running completion
function=$(complete -p posthoc-ema | sed -E 's/.*-F ([^ ]+).*/\1/')
while IFS= read -r line; do
    spaced=${line//=/ = }
    read -ra COMP_WORDS <<<"$spaced"
    [ "${line: -1}" = ' ' ] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    $function
    echo "${COMPREPLY[*]-}"
done
