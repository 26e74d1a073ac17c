# times in tokens, 4 million each step, take a window in tokens; the weights are those of the same
# window in steps
list() { # factor of the times, their unit
    local comma=
    printf '{"unit": "%s", "snapshots": [' "$2"
    for step in 50000 75000 100000 125000 150000 175000 200000; do
        printf '%s{"time": %s, "profile": "raw"}' "$comma" "$((step * $1))"
        comma=,
    done
    printf ']}\n'
}
list 1 steps >steps.json
list 4000000 tokens >tokens.json
"$phema" weights --quiet --profile window:125k steps.json >steps.txt
"$phema" weights --profile window:500G tokens.json
"$phema" weights --quiet --json --profile window:500G tokens.json | grep '"unit"'
"$phema" weights --quiet --profile window:500G --unit tokens tokens.json >tokens.txt
awk '{ print $NF }' steps.txt | tail -n +2 >steps.weights
awk '{ print $NF }' tokens.txt | tail -n +2 | cmp - steps.weights && echo the same weights
"$phema" weights --profile window:900G tokens.json
