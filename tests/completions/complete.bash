#!/usr/bin/env bash
# What bash offers for command lines: the function that the script has installed is called as readline
# would, words parted as it parts them.
#   tests/completions/complete.bash SCRIPT <LINES     a line of words, sorted, for each
set -u
# shellcheck source=/dev/null
source "$1"
compopt() { :; } # is only for a running completion
while IFS= read -r line; do
    spaced=${line//=/ = }
    read -ra COMP_WORDS <<<"$spaced"
    [ "${line: -1}" = ' ' ] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "$(complete -p posthoc-ema | sed -E 's/.*-F ([^ ]+).*/\1/')"
    printf '%s\n' "${COMPREPLY[@]+"${COMPREPLY[@]}"}" | sort | paste -sd ' '
done
