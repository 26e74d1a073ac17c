#!/usr/bin/env fish
# What fish offers for command lines: its own answer, without descriptions.
#   fish tests/completions/complete.fish SCRIPT <LINES     a line of words, sorted, for each
source $argv[1]
while read -l line
    complete -C "$line" | string replace -r '\t.*' '' | sort | paste -sd ' '
    or echo
end
