#!/usr/bin/env bash
# Averages of a large model by an array of Slurm: each task writes its part of the same outputs, and
# when all of them have succeeded the outputs get their names.
#   submit.sh N SIGMAS SNAPSHOTS OUT
#   submit.sh 8 0.05:0.25:0.01 ckpts sweep/
# A part that fails or is killed is submitted again by its number alone, as is the join:
#   sbatch --array=3 part.sbatch 8 0.05:0.25:0.01 ckpts sweep/
set -euo pipefail
if [ $# -ne 4 ]; then
    echo "usage: submit.sh N SIGMAS SNAPSHOTS OUT" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
array=$(sbatch --parsable --array="1-$1" "$here/part.sbatch" "$@")
sbatch --parsable --dependency="afterok:$array" "$here/join.sbatch" "$4"
