# Leftovers of every kind; cases of the command line source this file. Each leftover is made unusable, and
# then no command may use it.
#   try_leftovers SPOIL...   SPOIL PATH makes a leftover unusable
# Prints a line for each: its kind, the status and the message. Reports leftovers that were changed and
# outputs that were published. The caller may define "try", a command that runs the program.
declare -F try >/dev/null || try() { "$phema" "$@"; }
umask 022 # messages show modes
snapshot=$(find run -name 'snapshot-*-0.100.safetensors' | sort | tail -n 1)
state() { find "$@" -exec stat -c '%n %F %u %a %s' {} + 2>/dev/null | sort; }
refuses() { # its kind, the leftover, the published name, arguments
    local what=$1 left=$2 out=$3 before status
    shift 3
    before=$(state "$left")
    message=$(try "$@" 2>&1 >/dev/null)
    status=$?
    echo "$what: $status: $message" | sed -E 's/user [0-9]+, and only leftovers of user [0-9]+,/user U, and only leftovers of user V,/'
    [ "$before" = "$(state "$left")" ] || echo "$what: was changed: $(state "$left")"
    [ ! -e "$out" ] || echo "$what: $out is there, of user $(stat -c %u "$out")"
    rm -rf out out.*
}
# the leftovers of a run that is killed after it has written something
leave() {
    { env LD_PRELOAD="$(dirname "$phema")/tests/libfaults.so" FAULT_CALLS=pwrite FAULT_PATH=.partial \
        FAULT_PAUSE=50 FAULT_WITH=KILL FAULT_AT=22 "$phema" synth -q -j2 --no-sync --resume "$@"; } 2>/dev/null
}
try_leftovers() {
    local spoil=("$@") shards=(--shard-size 1M --sigma-rel 0.1 run) plain=(--sigma-rel 0.1 run) kind
    for kind in .safetensors .safetensors.zst; do
        echo other >"out$kind.partial" && "${spoil[@]}" "out$kind.partial"
        refuses "$kind" "out$kind.partial" "out$kind" synth -q "${plain[@]}" "out$kind"
    done
    echo other >out.safetensors.zst.plain.partial && "${spoil[@]}" out.safetensors.zst.plain.partial
    refuses "what is compressed" out.safetensors.zst.plain.partial out.safetensors.zst synth -q "${plain[@]}" out.safetensors.zst
    echo other >out.safetensors.partial && "${spoil[@]}" out.safetensors.partial
    refuses "a copy" out.safetensors.partial out.safetensors synth -q --into "$snapshot" "${plain[@]}" out.safetensors
    echo other >out.safetensors.json.partial && "${spoil[@]}" out.safetensors.json.partial
    refuses "its provenance" out.safetensors.json.partial out.safetensors synth -q --into "$snapshot" "${plain[@]}" out.safetensors
    mkdir out.partial && "${spoil[@]}" out.partial
    refuses "an empty directory" out.partial out synth -q "${shards[@]}" out
    mkdir out.partial && echo other >out.partial/model.safetensors && "${spoil[@]}" out.partial
    refuses "a directory" out.partial out synth -q "${shards[@]}" out
    leave "${plain[@]}" out.safetensors
    "${spoil[@]}" out.safetensors.partial
    refuses "what is resumed" out.safetensors.partial out.safetensors synth -q --resume "${plain[@]}" out.safetensors
    leave "${plain[@]}" out.safetensors
    "${spoil[@]}" out.safetensors.journal
    refuses "its journal" out.safetensors.journal out.safetensors synth -q --resume "${plain[@]}" out.safetensors
    leave "${shards[@]}" out
    "${spoil[@]}" "$(find out.partial -type f | sort | head -n 1)"
    refuses "a file in a directory that is resumed" out.partial out synth -q --resume "${shards[@]}" out
    try synth -q --part 1/2 "${plain[@]}" out.safetensors && "${spoil[@]}" out.safetensors.partial
    refuses "what parts share" out.safetensors.partial out.safetensors synth -q --part 2/2 "${plain[@]}" out.safetensors
    for kind in part-1-of-2 part-2-of-2; do
        try synth -q --part 1/2 "${plain[@]}" out.safetensors
        touch out.safetensors.$kind && "${spoil[@]}" out.safetensors.$kind
        refuses "$kind" out.safetensors.$kind out.safetensors synth -q --part 2/2 "${plain[@]}" out.safetensors
    done
    try synth -q --part 1/2 "${shards[@]}" out && "${spoil[@]}" "$(find out.partial -type f | sort | head -n 1)"
    refuses "a file that parts share" out.partial out synth -q --part 2/2 "${shards[@]}" out
    for kind in partial part-1-of-2 part-2-of-2; do
        for part in 1 2; do try synth -q --part $part/2 "${plain[@]}" out.safetensors; done
        "${spoil[@]}" out.safetensors.$kind
        refuses "join, $kind" out.safetensors.$kind out.safetensors join -q out.safetensors
    done
    for part in 1 2; do try synth -q --part $part/2 "${shards[@]}" out; done
    "${spoil[@]}" "$(find out.partial -type f | sort | head -n 1)"
    refuses "join, a file in a directory" out.partial out join -q out
    echo other >out.svg.partial && "${spoil[@]}" out.svg.partial
    refuses "a picture" out.svg.partial out.svg plot -q profiles "${plain[@]}" -o out.svg
}
