# Shared by the tests of posthoc-ema-mpi, which source it with their arguments PROGRAM MPI_PROGRAM LAUNCHER
# [FAULTS]. It has all of script.sh, changes to an empty directory, and defines
#   program mpi launcher faults fixtures   absolute paths; posthoc-ema is the program
#   options   of the launcher: more processes than processors
# shellcheck disable=SC2034 # not all tests need all of it
# shellcheck source=support/script.sh
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"
program=$(readlink -f "$1") || exit 1
mpi=$(readlink -f "$2") || exit 1
launcher=$3
faults=${4:+$(readlink -f "$4")}
fixtures=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../fixtures") || exit 1
options=()
[[ $launcher = *openmpi ]] && options=(--oversubscribe --bind-to none)
call_it "$program"
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for name in ${!SLURM_*}; do unset "$name"; done # mpirun would look for nodes in a job around the tests
mkdir "$work/in"
cd "$work/in" || exit 1
