#!/usr/bin/env bash
# The jobs of examples/slurm on a real Slurm of one node, which this test starts and stops: munged,
# slurmctld and slurmd with sockets, keys and ports of their own. Skipped where it cannot start.
#   tests/slurm.sh PROGRAM EXAMPLES [MPI_PROGRAM]
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
examples=$(readlink -f "$2") || exit 1
export LC_ALL=C PATH=$PATH:/usr/sbin
skip() {
    echo "skipped: $1" >&2
    exit 77
}
for name in munged slurmctld slurmd sbatch srun scontrol; do
    command -v $name >/dev/null || skip "no $name; to run it: apt-get install munge slurmctld slurmd slurm-client"
done
for name in ${!SLURM_*}; do unset "$name"; done # of a job that runs the tests
call_it "$program"
[ -n "${3-}" ] && ln -s "$(readlink -f "$3")" "$work/bin/posthoc-ema-mpi"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

daemons=()
# shellcheck disable=SC2317 # called by trap
stop() {
    [ ${#daemons[@]} -gt 0 ] && kill "${daemons[@]}" 2>/dev/null && wait "${daemons[@]}" 2>/dev/null
    rm -rf "$work"
}
trap stop EXIT
start() { # NAME ARGUMENTS...: in the foreground of a job of this shell
    "$@" >"$work/${1##*/}.log" 2>&1 &
    daemons+=($!)
}
await() { # SECONDS COMMAND...: until it succeeds
    local end=$((SECONDS + $1))
    until "${@:2}" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# ---- A Slurm of one node ----

user=$(id -un)
host=$(hostname -s)
port=$((20000 + $$ % 20000))
mkdir -p "$work/state" "$work/spool" "$work/in"
chmod 755 "$work"
dd if=/dev/urandom of="$work/key" bs=128 count=1 status=none && chmod 600 "$work/key"
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=t
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
MpiDefault=none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk "/^MemTotal/ { print int(\$2 / 1024) - 64 }" /proc/meminfo) State=UNKNOWN
PartitionName=p Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
END
start munged --foreground --force --socket="$work/munge.socket" --key-file="$work/key" \
    --log-file="$work/munged.own.log" --pid-file="$work/munged.pid" --seed-file="$work/munged.seed"
await 60 test -S "$work/munge.socket" || skip "munged does not start: $(tail -n 1 "$work"/munged*.log); to run it: sudo scripts/test -R slurm"
start slurmctld -D
start slurmd -D
# shellcheck disable=SC2317 # called by await
is_up() { sinfo -h -o %T | grep -qE '^(idle|mixed|allocated)'; }
await 120 is_up || skip "Slurm does not start: $(tail -n 1 "$work/slurmctld.log") $(tail -n 1 "$work/slurmd.log"); to run it: sudo scripts/test -R slurm"

# ---- The jobs ----

cd "$work/in" || exit 1
posthoc-ema gen -q --count 4 --params 200k --no-sync run >/dev/null
posthoc-ema synth -q --no-sync --sigma-rel 0.06,0.12 run one/ >/dev/null
average=(--no-sync --sigma-rel '0.06,0.12' run)
submit() { # ARGUMENTS... of sbatch: waits for the job
    timeout 300 sbatch --wait --overcommit --cpus-per-task=1 --output="$work/in/job.%j.%a" "$@" >"$work/said" 2>&1
}
show() { tail -n 5 "$work/said" job.* >&2; }

submit --ntasks=4 "$examples/srun.sbatch" "${average[@]}" step/ || { show; fail "a step of srun fails"; }
diff -r one step >&2 || fail "a step of srun makes other bytes than one run"
grep -q 'wrote part 1 of 4' job.* || { show; fail "a step of srun has no four parts"; }
rm -f job.*

submit --array=1-3 --ntasks=1 "$examples/array.sbatch" "${average[@]}" array/ || { show; fail "an array fails"; }
diff -r one array >&2 || fail "an array makes other bytes than one run"
rm -f job.*

if [ -n "${3-}" ]; then
    submit --ntasks=4 "$examples/mpi.sbatch" -v "${average[@]}" mpi/ || { show; fail "a job of MPI fails"; }
    diff -r one mpi >&2 || fail "a job of MPI makes other bytes than one run"
    grep -q 'runs by 4 processes:' job.* || { show; fail "a job of MPI has no four processes"; }
    rm -f job.*
fi

# a task that fails leaves the parts of the others; the same command again makes what is missing
mkdir bad
cat >bad/posthoc-ema <<END
#!/bin/bash
[ "\$SLURM_PROCID" = 1 ] && exit 6
exec "$program" "\$@"
END
chmod +x bad/posthoc-ema
PATH=$PWD/bad:$PATH submit --ntasks=3 "$examples/srun.sbatch" "${average[@]}" again/ && fail "a step with a failed task succeeds"
[ "$(find again -name '*.part-*-of-3' | wc -l)" = 4 ] || { show; fail "the parts of the others are not there: $(ls again)"; }
rm -f job.*
submit --ntasks=3 "$examples/srun.sbatch" "${average[@]}" again/ || { show; fail "the same command again fails"; }
# Where the missing part is done and joined before process 1 starts, this finds the outputs up to date.
grep -qE 'part 1 of 3 is already written|is up to date' job.* || { show; fail "part 1 is not found to be done"; }
grep -q 'wrote part 1 of 3' job.* && { show; fail "part 1 is made twice"; }
diff -r one again >&2 || fail "the same command again makes other bytes"
rm -f job.*

# a script of sbatch is one process, whatever its job may start; in a step of several, synth refuses
submit --ntasks=4 --wrap "posthoc-ema synth -q ${average[*]} alone/" || { show; fail "a script of sbatch is refused"; }
diff -r one alone >&2 || fail "a script of sbatch makes other bytes"
submit --ntasks=2 --wrap "srun --overcommit posthoc-ema synth -q ${average[*]} none/" && fail "two tasks without --part succeed"
cat job.* | grep -q 'of 2 (SLURM_PROCID and SLURM_NTASKS), and all would write' || { show; fail "two tasks without --part do not say why they end"; }
[ ! -e none ] || fail "two tasks without --part leave something"
exit $failed
