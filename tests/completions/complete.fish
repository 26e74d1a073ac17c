#!/usr/bin/env fish
# Prints the completions of fish for command lines, without descriptions.
#   fish tests/completions/complete.fish SCRIPT <LINES     a line of words, sorted, for each
source $argv[1]
while read -l line
    complete -C "$line" | string replace -r '\t.*' '' | sort | paste -sd ' '
    or echo
end
