# Rank and size come from the variables of a launcher, which must agree. Without --part, one of several
# processes refuses.
"$phema" gen -q --count 2 --params 100 --no-sync run >/dev/null
part() { # VARIABLES...: the part that they make, or the refusal
    env "$@" "$phema" synth --no-sync --part auto --sigma-rel 0.1 run out.safetensors >said 2>&1
    local status=$?
    grep -oE '^(wrote part [0-9]+ of [0-9]+|posthoc-ema: .*)' said
    [ $status = 0 ] || echo "status $status"
    rm -f out.safetensors*
}
exec 2>&1
echo "- each launcher"
part SLURM_PROCID=0 SLURM_NTASKS=4
part SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_STEP_ID=0 PMIX_RANK=0
part OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=0
part PMI_RANK=0 PMI_SIZE=5
part RANK=0 WORLD_SIZE=2
array() { part SLURM_ARRAY_TASK_ID="$1" SLURM_ARRAY_TASK_COUNT="$2" SLURM_ARRAY_TASK_MIN="$3" SLURM_ARRAY_TASK_MAX="$4" "${@:5}"; }
array 1 8 1 8
array 0 8 0 7
array 10 8 10 80 SLURM_ARRAY_TASK_STEP=10
echo "- one task in an array, and one launcher in a process of another"
array 1 8 1 8 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 SLURM_JOB_ID=7 PMIX_RANK=0
part SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 SLURM_JOB_ID=7 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3
echo "- a script of sbatch was not started by srun"
part SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7
echo "- refused"
part NOTHING=1
part RANK=0
part PMIX_RANK=0
part SLURM_PROCID=1 SLURM_NTASKS=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4
part SLURM_PROCID=1 SLURM_NTASKS=4 RANK=1 WORLD_SIZE=8
part OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=2
part PMI_RANK=4 PMI_SIZE=4
part PMI_RANK=x PMI_SIZE=4
part PMI_RANK= PMI_SIZE=4
part RANK=0 WORLD_SIZE=0
part RANK=0 WORLD_SIZE=20000
array 3 3 1 7
array 1 8 '' ''
echo "- without --part"
without() {
    env "$@" "$phema" synth -q --no-sync --sigma-rel 0.1 run out.safetensors
    echo "status $?"
    rm -f out.safetensors
}
without RANK=3 WORLD_SIZE=4
without SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_JOB_ID=7 SLURM_STEP_ID=0
without RANK=0 WORLD_SIZE=1
without SLURM_PROCID=0 SLURM_NTASKS=16 SLURM_JOB_ID=7
without SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=8
without RANK=model WORLD_SIZE=large
