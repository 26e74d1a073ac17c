# Real launchers start the processes: mpirun of Open MPI and of MPICH, whichever is installed.
launchers=()
for name in mpirun.openmpi mpirun.mpich; do
    command -v $name >/dev/null && launchers+=("$name")
done
[ ${#launchers[@]} -gt 0 ] || { echo "skipped: no mpirun is installed" >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launch() { # LAUNCHER N ARGUMENTS...
    local options=()
    [[ $1 = *openmpi ]] && options=(--oversubscribe --bind-to none)
    "$1" "${options[@]}" -n "$2" "$phema" synth -q --no-sync "${@:3}" </dev/null
}
"$phema" gen -q --count 3 --params 50k --no-sync run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1,0.2 run whole/ >/dev/null
for launcher in "${launchers[@]}"; do
    for n in 2 3; do
        launch "$launcher" $n --part auto --sigma-rel 0.1,0.2 run by$n/ >out || echo "$launcher $n fails"
        [ "$(wc -l <out)" = 2 ] || echo "$launcher $n: $(cat out)"
        diff -r whole by$n || echo "$launcher $n: other bytes"
        rm -r by$n
    done
    launch "$launcher" 2 --sigma-rel 0.1 run out.safetensors >out 2>&1 && echo "$launcher without --part: status 0"
    grep -q 'this is process [12] of 2 .*--part auto shares the work' out || cat out
    [ -e out.safetensors ] && echo "$launcher without --part: an output"
done
ls
