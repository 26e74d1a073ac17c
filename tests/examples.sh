#!/usr/bin/env bash
# Runs the files of examples/. The sweep finds the width of the average that it is scored against, and
# does nothing twice. The steps of the CI job succeed, and fail for a wrong average. The jobs of Slurm
# are those of tests/slurm.sh.
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
