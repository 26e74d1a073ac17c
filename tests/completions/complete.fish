#!/usr/bin/env fish
# Prints the completions of fish for command lines, without descriptions.
#   fish tests/completions/complete.fish SCRIPT <LINES     a line of words for each
source $argv[1]
while read -l line
    echo (complete -C "$line" | string replace -r '\t.*' '')
end
