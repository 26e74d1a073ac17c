#!/usr/bin/env bash
# Runs the files of examples/. The sweep finds the width of the average that it is scored against, and
# does nothing twice. The Slurm array, with stand-ins for Slurm's commands, makes the same bytes as one
# run. The steps of the CI job succeed, and fail for a wrong average.
#   tests/examples.sh PROGRAM EXAMPLES
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
examples=$(readlink -f "$2") || exit 1
mkdir "$work/in"
call_it "$program"
export LC_ALL=C
cd "$work/in" || exit 1
posthoc-ema gen -q --count 16 --truth 0.13 --no-sync run >/dev/null
truth=run/truth/truth-0004096-0.130.safetensors

# the sweep
sweep() {
    "$examples/sweep.sh" run sweep "$1" "$examples/evaluate.sh" $truth 2>"$work/scored"
}
best=$(sweep 0.05:0.25:0.02)
[ "$best" = sweep/phema-0004096-0.130.safetensors ] || fail "the sweep finds '$best'"
[ "$(wc -l <"$work/scored")" = 11 ] || fail "the sweep scores $(wc -l <"$work/scored") averages of 11"
grep -q '<svg' sweep/scores.svg || fail "the sweep draws nothing"
best=$(sweep 0.11,0.12,0.13)
[ "$best" = sweep/phema-0004096-0.130.safetensors ] || fail "the second sweep finds '$best'"
[ "$(cut -d , -f 1 "$work/scored")" = 0.120 ] || fail "the second sweep scores $(cat "$work/scored")"

# Slurm: an array runs its tasks concurrently; jobs that depend on it wait for it
cat >"$work/bin/sbatch" <<'END'
#!/usr/bin/env bash
set -u
array='' dependency=''
while [[ $1 = --* ]]; do
    case $1 in
    --array=*) array=${1#*=} ;;
    --dependency=afterok:*) dependency=${1#*:} ;;
    esac
    shift
done
id=$$
if [ "$array" ]; then
    tasks=()
    for i in $(seq "${array%-*}" "${array#*-}"); do
        SLURM_ARRAY_TASK_ID=$i bash "$@" >&2 &
        tasks+=($!)
    done
    failed=0
    for task in "${tasks[@]}"; do wait "$task" || failed=1; done
    echo $failed >"jobs.$id"
else
    [ "$(cat "jobs.$dependency")" = 0 ] || { echo "never starts" >&2; exit 1; }
    bash "$@" >&2 || exit 1
fi
echo $id
END
chmod +x "$work/bin/sbatch"
posthoc-ema synth -q --no-sync --sigma-rel 0.06,0.12 run one/ >/dev/null
"$examples/slurm/submit.sh" 3 0.06,0.12 run parts/ >"$work/jobs" 2>"$work/log" || {
    cat "$work/log" >&2
    fail "the array of Slurm fails"
}
[ "$(wc -l <"$work/jobs")" = 1 ] || fail "submit.sh prints $(cat "$work/jobs")"
diff -r one parts >&2 || fail "the array of Slurm makes other bytes than one run"

# CI: every step except the installation, in order
steps() {
    awk '/^      - name: / { step = substr($0, 15) }
        /^          / && step != "install" { print substr($0, 11) }' "$examples/ci/posthoc-ema.yml"
}
mkdir ci broken
[ "$(steps | grep -c posthoc-ema)" -ge 4 ] || fail "no steps found in the CI job"
(cd ci && bash -eu -o pipefail <(steps)) >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    fail "the CI job fails"
}
# the expected average of another training
(cd broken && bash -eu -o pipefail <(steps | sed '/^posthoc-ema synth/i posthoc-ema gen -qf --count 16 --dtype f16 --truth 0.03,0.15 --seed 2 other && rm -r run/truth && mv other/truth run')) >"$work/log" 2>&1 &&
    fail "the CI job succeeds where averages are wrong"
grep -q 'tensors differ' "$work/log" || fail "the CI job fails for another reason: $(tail -n 1 "$work/log")"
exit $failed
