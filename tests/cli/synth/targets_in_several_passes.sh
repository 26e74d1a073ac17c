# When memory is short, tiles shrink; then targets are made in several passes through the snapshots. The bytes stay
# the same, and memory never exceeds the limit. Sanitizers use memory of their own, so their limit is higher and
# the number of passes is not compared.
set -e
number() { grep -o "\"$1\": [0-9]*" "$2" | head -n 1 | sed 's/.*: //'; }
"$phema" gen -q --count 3 --steps 30 --params 60k --dtype f16 --no-sync run >/dev/null
mkdir packed
for file in run/*.safetensors; do
    zstd -q "$file" -o "packed/$(basename "$file").zst"
done
widths=0.05:0.25:0.0025
for from in run packed ruled; do
    snapshots=$from
    rules=()
    [ $from = ruled ] && snapshots=run rules=(--rule 'bias=0.05' --rule 'gain=copy' --rule '\.0\.=0.2')
    "$phema" synth -q -j3 --no-sync --sigma-rel $widths "${rules[@]}" $snapshots $from.all/ >/dev/null
    "$phema" plan -q -j3 --no-sync --json --sigma-rel $widths "${rules[@]}" $snapshots $from.all/ --force >plan.json
    spare=$(($(number sums plan.json) * 2 / 5 / 64)) # of the smallest tiles that all targets need
    [ "$from" != packed ] || spare=$((spare + $(number decoders plan.json)))
    limit=$(($(number baseline plan.json) + spare + 1100000))
    [ -z "${sanitize-}" ] || limit=$((limit + 32000000)) # what was freed is kept a while
    "$phema" plan -q -j3 --max-ram $limit --json --sigma-rel $widths "${rules[@]}" $snapshots >plan.json
    "$phema" synth -q -j3 --no-sync --max-ram $limit --json --sigma-rel $widths "${rules[@]}" $snapshots $from.tight/ >synth.json
    for file in "$from".all/*; do
        cmp "$file" "$from.tight/${file##*/}"
    done
    if [ -n "${sanitize-}" ]; then
        echo "$from: several passes"
        continue
    fi
    [ "$(number passes plan.json)" -gt 1 ] && echo "$from: several passes"
    [ "$(number peak_anonymous_bytes synth.json)" -le "$limit" ] || number peak_anonymous_bytes synth.json
done
ls run.tight | wc -l
