exec 2>&1
"$phema" gen --count 1 --steps 8 run >/dev/null
summary() { "$phema" weights --sigma-rel 0.1 "$@" run 2>&1 | grep -E 'tensors, |tensors \(|^posthoc-ema: '; }
summary
summary --include weight
summary --include weight --include bias --exclude '^blocks\.0'
summary --exclude .
summary --key blocks
summary --key blocks --include '^0'
summary --key nothing
summary --include '('
true
