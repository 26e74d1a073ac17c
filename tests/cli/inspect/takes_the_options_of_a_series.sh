# inspect reads a series as the other verbs do, with the same options. The command that it prints has them, and works.
"$phema" gen -q --count 4 --params 200 --tensors 2 --input-profile raw run >/dev/null
mkdir raw
for file in run/*.safetensors; do
    LC_ALL=C sed 's/posthoc_ema[.]profile/posthoc_nil.profile/' "$file" >"raw/step-${file#run/snapshot-0*}"
done
regex='-(?<time>[0-9]+)-'
inspect() {
    "$phema" inspect -q "$@" >said || return
    grep -v '^    0.01' said
    # shellcheck disable=SC2016 # for eval
    command=$(sed -n 's/^next: posthoc-ema synth/"$phema" synth -q/p' said)
    [ -z "$command" ] || eval "${command/0.05:0.25:0.05/0.1}"
    rm -rf sweep
}
exec 2>&1
echo "- without them"
inspect --name-regex "$regex" raw
echo "- with them"
inspect --name-regex "$regex" --input-profile raw raw
inspect --name-regex "$regex" --input-profile raw --last 3 --unit kimg --include bias raw
posthoc_ema=$fixtures/posthoc_ema/snapshots
inspect --input-sigma 0.05,0.28 --update-every 5 "$posthoc_ema"
inspect --input-sigma 0.05,0.28 --update-every 5 --time-offset 100 --reset-at 120 --from 150 --to 250 --every 2 "$posthoc_ema"
inspect --layout own --use averages --exclude bias run
echo "- values that are none"
inspect --input-sigma 0.4 "$posthoc_ema"
inspect --from 4000 --to 3000 run
echo "- of one checkpoint"
inspect --input-profile raw --include bias run/*4096* | sed -n '/by synth/,$p'
