#!/usr/bin/env bash
# Functions that the scripts share. A long step is one line on a terminal and nothing elsewhere. A missing
# tool is one line with the command that installs it.
#   tests/scripts.sh SOURCE_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1
export SHELL=/bin/bash # for script: sh lacks substrings
steps="printf '[1/2] a short one\n[2/2] a long one, %060d\n' 0"

lines=$(TERM=xterm script -qec "stty cols 30; . scripts/support.sh; $steps | status_line building" /dev/null |
    tr -d '\n' | sed 's/\r/\n/g; s/\x1b\[K//g')
wanted='
building: [1/2] a short one
building: [2/2] a long one, 0
'
[ "$lines" = "${wanted%$'\n'}" ] || fail "on a terminal of 30 columns: $lines"
[ -z "$(bash -c ". scripts/support.sh; $steps | status_line building" 2>&1)" ] ||
    fail "progress is shown where there is no terminal"
[ -z "$(TERM=dumb script -qec ". scripts/support.sh; $steps | status_line building" /dev/null)" ] ||
    fail "progress is shown on a terminal that cannot erase a line"

said=$(bash -c '. scripts/support.sh; need no-such-tool its-package; echo goes on' scripts/any 2>&1)
[ "$said" = 'scripts/any: no-such-tool is missing; try: apt-get install its-package' ] ||
    fail "a missing tool: $said"

# Steps of long scripts: their minutes, and commands beside them.
cat >"$work/steps" <<'EOF'
set -euo pipefail
. "$1/scripts/support.sh"
cd "$2"
trap 'end_beside; show_minutes | sed "s/ 0\.[0-9] / 0 /"' EXIT
step a first one
beside works echo from beside
beside fails sh -c 'echo no luck; exit 3'
beside stays sh -c 'sleep 300; echo too late'
step another
await works
await fails
step one that is not reached
EOF
said=$({ timeout 60 bash "$work/steps" "$PWD" "$work" 2>&1 || echo "status $?"; } |
    sed 's/^== [0-9]*:[0-9][0-9] /== #:## /')
[ "$said" = '
== #:## a first one

== #:## another
from beside
no luck

| step | minutes |
|---|---:|
| a first one | 0 |
| another | 0 |
| sum | 0 |
status 3' ] || fail "steps of a script: $said"
said=$(scripts/release-check --only nothing 2>&1 || echo ", status $?")
[[ $said = "scripts/release-check: expected --from STEP, --only STEP or --list, found '--only nothing'; steps: setup analyse "*", status 2" ]] ||
    fail "an unknown step of scripts/release-check: $said"
said=$(scripts/setup --tests 2>&1 || echo ", status $?")
[ "$said" = "scripts/setup: expected --wheel, --test, --ci or nothing, found '--tests'
, status 2" ] ||
    fail "an unknown option of scripts/setup: $said"

# The model of docs/gpu.md is what bench/gpu_model computes; scripts/test-gpu prints measured rates beside it.
diff <(bench/gpu_model) <(sed -n '/^| snapshots | targets/,/^$/p' docs/gpu.md | sed '/^$/d') ||
    fail "docs/gpu.md has another table than bench/gpu_model prints"
cat >"$work/bench_gpu" <<'EOF'
#!/bin/sh
printf 'NVIDIA H100, 4 lanes\n\n| targets | sums | by | GB/s of inputs | of copying |\n|---|---|---|---|---|\n'
printf '| 0 | | copied only | 50.0 | 1.00 |\n| 1 | f64 | own kernel | 45.0 | 0.90 |\n'
printf '| 64 | f64 | own kernel | 20.0 | 0.40 |\n| 64 | f64 | cuBLAS | 30.0 | 0.60 |\n'
EOF
chmod +x "$work/bench_gpu"
# shellcheck disable=SC2034 # used by the function
bin=$work model=$PWD/bench/gpu_model
eval "$(sed -n '/^against_model()/,/^}/p' scripts/test-gpu)"
# 32 snapshots and 64 targets: twice as many bytes return as arrive
[ "$(against_model 4 | tail -n 2)" = '| 1 | 45.0 | 50.0 | 0.90 |
| 64 | 20.0 | 25.0 | 0.80 |' ] || fail "scripts/test-gpu, measured and model: $(against_model 4)"
# What is skipped says how to run it, beside the status 77.
grep -rlE 'exit[ (]77' tests | while read -r file; do
    awk '/exit[ (]77/ {
             n++
             said = before2 "\n" before1 "\n" $0
             if ($0 !~ /\|\| exit|cat error/ && said ~ /echo|print\(/ && said !~ /to run it: |skipped: \$1/) print FILENAME ":" FNR ": " $0
         }
         { before2 = before1; before1 = $0 }
         END { print "found " n }' "$file"
done >"$work/reasons"
[ "$(grep -c '^found' "$work/reasons")" -gt 15 ] || fail "too few skipped tests were found"
! grep -v '^found' "$work/reasons" >&2 || fail "skipped tests do not say how to run them"
exit $failed
