# Whatever the umask, nobody else may write an output until it is published: the next run can use the leftovers
# of a killed one. A published output has the permissions of any new file.
[[ $sanitize = *thread* ]] && echo "the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
"$phema" gen -q --count 2 --steps 30 --params 1M --no-sync run >/dev/null
synth() { "$phema" synth -q --no-sync "$@" >/dev/null || echo "status $?: $*"; }
killed() { # calls, number, arguments: whether it comes so far
    { $faults FAULT_CALLS="$1" FAULT_WITH=KILL FAULT_AT="$2" "$phema" synth -q -j1 "${@:3}" >/dev/null; } 2>/dev/null
    [ $? = 137 ]
}
modes() { # what is in new, each kind once, against a new file and a new directory
    local file directory
    touch file && mkdir directory
    file=$(stat -c %a file) directory=$(stat -c %a directory)
    find new -mindepth 1 -type f ! -perm "$file" -exec stat -c "%n is %a, not $file" {} +
    find new -mindepth 1 -type d ! -perm "$directory" -exec stat -c "%n is %a, not $directory" {} +
    [ -n "$(find new -type f)" ] || echo "nothing is there"
    rm -r file directory
}
hidden() {
    [ -n "$(ls new)" ] || echo "nothing is left"
    find new -mindepth 1 \( -name '*.partial*' -o -name '*.journal' -o -name '*.part-*' \) -perm /022 \
        -exec stat -c "%n is %a and left" {} +
}
snapshot=$(find run -name 'snapshot-*-0.100.safetensors' | sort | tail -n 1)
forms=(o.safetensors o.safetensors.zst "--shard-size 1M o" "--into $snapshot c.safetensors")
for mask in 000 077; do
    umask $mask
    for form in "${forms[@]}"; do
        read -ra options <<<"$form"
        out=new/${options[-1]}
        unset "options[-1]"
        options+=(--sigma-rel 0.1 run "$out")
        rm -rf new && mkdir new
        synth "${options[@]}" && modes
        synth -f "${options[@]}" && modes
        [ $mask = 000 ] || continue # what takes long: once
        # with an existing output, which is a leftover itself between the exchange and its end
        for ((at = 1; at < 20; at++)); do
            killed unlink,unlinkat,rmdir,fsync $at -f "${options[@]}" || break
            hidden
            synth -f "${options[@]}" && modes
        done
        [ $at -gt 2 ] || echo "killed $at times: ${options[*]}"
        rm -r new/*
        killed pwrite,pwritev,copy_file_range 2 --no-sync "${options[@]}" || echo "not killed: ${options[*]}"
        hidden
        synth "${options[@]}" && modes
        rm -r new/*
        { $faults FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=50 FAULT_WITH=KILL FAULT_AT=22 "$phema" synth -q --no-sync -j2 --resume "${options[@]}" >/dev/null; } 2>/dev/null
        hidden
        synth --resume "${options[@]}" && modes
    done
    for form in o.safetensors "--shard-size 1M o"; do
        read -ra options <<<"$form"
        out=new/${options[-1]}
        unset "options[-1]"
        rm -rf new && mkdir new
        for part in 1 2 3; do synth --part $part/3 "${options[@]}" --sigma-rel 0.1 run "$out" && hidden; done
        "$phema" join -q "$out" >/dev/null && modes
    done
    rm -rf new && mkdir new
    "$phema" plot -q profiles --sigma-rel 0.1 run -o new/a.svg --csv new/a.csv >/dev/null && modes
    echo "umask $mask"
done
