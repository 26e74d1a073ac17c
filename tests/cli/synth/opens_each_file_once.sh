# Opening a file takes a message to the server of a network file system. Each of 40 snapshots is opened once, or
# twice where its header is not in the page cache; 16 more are for looks whether data are. Counted by strace.
strace -qq -o /dev/null true 2>/dev/null || {
    echo "no strace, or it is not allowed here: not run" >&2
    exit 77
}
(ulimit -n 16384) 2>/dev/null || {
    echo "a process may have fewer than 16384 descriptors: not run" >&2
    exit 77
}
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-} # not possible under strace
"$phema" gen -q --count 20 --steps 40 --params 5k --dtype f32 --no-sync run >/dev/null
rm -rf run/truth
count() { # NAME ARGUMENTS...: the opens of snapshots, and of what could lie beside or in them
    strace -f -qq -e trace=openat,open -o trace "$phema" "${@:2}" >/dev/null || echo "status $?"
    files=$(grep -c '"run/[^"]*\.safetensors"' trace)
    others=$(grep -c '"run/[^"]*json"' trace)
    names=$(grep -o '"run/[^"]*\.safetensors"' trace | sort -u | wc -l)
    [ "$files" -le $((2 * names + 16)) ] && files="at most 2 for each and 16"
    echo "$1: $names snapshots, opens: $files; of descriptions: $others"
}
count synth synth -q -j1 --sigma-rel 0.1 run out.safetensors
count weights weights -q --sigma-rel 0.1 run
count plan plan -q --assume-bandwidth 1G --sigma-rel 0.1 run
# of an average that lies among the snapshots, the description is read; others have none
"$phema" synth -q --sigma-rel 0.2 --at 20 run run/snapshot-0000020-0.200.safetensors
echo '{"posthoc_ema.provenance": "{}"}' >run/snapshot-0000018-0.050.safetensors.json
count described weights -q --sigma-rel 0.1 run
grep -q '0000018-0.050.safetensors"' trace && echo "the described output is opened"
# where descriptors are few, files are opened again: the same bytes
(ulimit -n 60 && "$phema" synth -q --sigma-rel 0.1 --at 40 --last 20 run few.safetensors)
"$phema" synth -q --sigma-rel 0.1 --at 40 --last 20 run many.safetensors
cmp few.safetensors many.safetensors
