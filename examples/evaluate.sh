#!/usr/bin/env bash
# Stands for an evaluation, in which a model would be run: how far an average is from a known one.
#   evaluate.sh TRUTH AVERAGE
set -euo pipefail
compared=$(posthoc-ema diff --json "$2" "$1") || [ $? = 1 ] # they differ: that is the score
sed -n 's/^ "rel_l2": \([^,]*\).*/\1/p' <<<"$compared"
