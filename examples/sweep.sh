#!/usr/bin/env bash
# Makes averages of several widths in one pass over the snapshots, scores each with a command, draws the
# scores and prints the best average.
#   sweep.sh SNAPSHOTS DIRECTORY SIGMAS COMMAND [ARGUMENT...]
#   sweep.sh ckpts sweep 0.05:0.25:0.01 ./evaluate.sh
# COMMAND gets the path of an average as its last argument and prints a score on its last line, the
# lower the better. What is made and scored already is not done again, so a sweep that was interrupted
# goes on, and one with more widths scores the new ones only.
set -euo pipefail
if [ $# -lt 4 ]; then
    echo "usage: sweep.sh SNAPSHOTS DIRECTORY SIGMAS COMMAND [ARGUMENT...]" >&2
    exit 2
fi
snapshots=$1 directory=$2 sigmas=$3
shift 3

posthoc-ema synth --quiet --skip-existing --sigma-rel "$sigmas" "$snapshots" "$directory/" >/dev/null
scores=$directory/scores.csv
[ -e "$scores" ] || echo sigma_rel,score >"$scores"
for average in "$directory"/phema-*; do
    case $average in *.json | *.partial) continue ;; esac
    sigma=$(basename "$average" | grep -oE '[0-9]+\.[0-9]+' | tail -n 1)
    grep -q "^$sigma," "$scores" && continue
    score=$("$@" "$average" | tail -n 1)
    echo "$sigma,$score" | tee -a "$scores" >&2
done
posthoc-ema plot sweep --quiet --force "$scores" -o "$directory/scores.svg" >/dev/null
best=$(tail -n +2 "$scores" | sort -t , -g -k 2,2 | head -n 1)
echo "$directory"/phema-*"-${best%%,*}"*
