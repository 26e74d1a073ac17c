# Targets that trainers define, from raw parameters of every step: the weights are those of the trainer's own
# recurrence, which awk follows.
"$phema" gen -q --input-profile raw --count 24 --steps 24 run >/dev/null
weights() {
    "$phema" weights -q --json --metric walk --profile "$@" run | tr -d ' \n' | grep -o '"weights":\[[^]]*\]' |
        sed 's/.*\[//; s/\]//' | tr , '\n'
}

# compare NAME: two columns, expected and found
compare() {
    awk -v name="$1" '{ off = $1 - $2; if (off * off > 1e-14) { print name, "step", NR, $1, $2; bad = 1 } }
        END { if (NR != 24) print name, NR, "weights"; else if (!bad) print name, "equal" }'
}

# TRL's BEMACallback: ema and the parameters at the last update and at the first, step by step
bema() { # every after ema-power bias-power lag multiplier min-ema end
    awk -v every="$1" -v after="$2" -v k="$3" -v e="$4" -v lag="$5" -v m="$6" -v least="$7" -v end="$8" 'BEGIN {
        for (step = after; step <= end; step++) {
            if (step == after) { ema[after] = 1; continue }
            if ((step - after) % every) continue
            b = (lag + m * step) ^ -k; if (b < least) b = least
            a = (lag + m * step) ^ -e
            for (s = 0; s <= 24; s++) ema[s] *= 1 - b
            ema[step] += b
            for (s = 0; s <= 24; s++) out[s] = ema[s]
            out[step] += a; out[after] -= a
        }
        for (s = 1; s <= 24; s++) printf "%.17g\n", out[s] }'
}
paste <(bema 5 3 0.5 0.2 10 1 0 24) <(weights bema:every=5,after=3) | compare bema
paste <(bema 4 2 0.5 0.2 10 1 0.3 20) <(weights bema:every=4,after=2,min-ema=0.3 --at 20) | compare bema
paste <(bema 1 1 0.7 0.4 3 0.5 0 24) <(weights bema:every=1,after=1,ema-power=0.7,bias-power=0.4,lag=3,multiplier=0.5) |
    compare bema

# torchtitan: 2^(-1/(fraction k)) at every second step
paste <(awk 'BEGIN { for (s = 2; s <= 24; s += 2) { b = 2 ^ (-1 / (0.07 * s / 2))
        for (r = 0; r <= 24; r++) w[r] *= b; w[s] += 1 - b }
    for (s = 1; s <= 24; s++) printf "%.17g\n", w[s] }') <(weights titan:fraction=0.07,every=2) | compare titan

# before the training begins there is no snapshot: the weight of the initial parameters goes to the earliest
"$phema" weights -q --metric walk --profile bema:every=4 run | tail -n 4
"$phema" weights -q --profile bema run 2>&1
"$phema" weights -q --sigma-rel 0.1 --input-profile bema:every=5 run 2>&1
"$phema" weights -q --profile bema:every=5,lag=0.5 run 2>&1

# a window in tokens: of times that count them, and the same in steps
header='{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
for step in $(seq 1 6); do
    printf '\66\0\0\0\0\0\0\0%s\0\0\200?' "$header" >"raw-$step.safetensors"
    echo "{\"file\": \"raw-$step.safetensors\", \"time\": ${step}00000000000, \"profile\": \"raw\"}"
done | paste -s -d , | sed 's/.*/{"unit": "tokens", "snapshots": [&]}/' >tokens.json
sed 's/00000000000,/,/g; s/tokens/steps/' tokens.json >steps.json
"$phema" weights --metric walk --profile window:300G tokens.json 2>/dev/null
plain() { "$phema" weights -q --metric walk --profile "$1" "$2" | sed 's/00000000000//; s/window.*//' | tr -s ' '; }
diff <(plain window:300G tokens.json) <(plain window:3 steps.json) && echo equal
# times count steps of 100 billion tokens
diff <(plain window:300G/100G steps.json) <(plain window:3 steps.json) && echo equal
