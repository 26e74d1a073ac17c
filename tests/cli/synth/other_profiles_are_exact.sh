# The truth merges raw parameters of every step; averages made from every tenth step come near it. Shapes:
# uniform, cosine decay, and an exponential EMA by its recurrence.
"$phema" gen -q --count 200 --steps 200 --raw --params 2000 run >/dev/null
"$phema" synth -q --name-regex 'snapshot-(?<time>[0-9]+)-raw' --input-profile raw --profile sma:50 \
    --profile wsm-cosine:50 --profile ema-merge:alpha=0.034063671075154 run truth
"$phema" synth -q --name-regex 'snapshot-(?<time>[0-9]+)-(?<sigma>0[.0-9]+)[.]safetensors' --every 10 \
    --profile window:50 --profile cosine:50 --profile ema:20 run made
near() { # what is made, what is true
    "$phema" diff --json "made/$1" "truth/$2" |
        awk -v name="$1" '/"rel_l2"/ && !n++ { sub(/.*: /, ""); print name, ($0 + 0 < 5e-3 ? "is near" : "is off by " $0) }'
}
near phema-0000200-window50.safetensors phema-0000200-sma50.safetensors
near phema-0000200-cosine50.safetensors phema-0000200-wsm-cosine50.safetensors
near phema-0000200-ema20.safetensors phema-0000200-ema-merge0.034063671075154.safetensors
