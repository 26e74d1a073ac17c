# After a second a terminal shows what diff, inspect and join do; diff how far it is and the time left. Nothing of
# it stays.
command -v script >/dev/null || { echo "script is not installed" >&2; exit 77; }
case ${sanitize:-} in *thread*) echo "skipped: not under the thread sanitizer" >&2; exit 77 ;; esac
"$phema" gen -q --count 2 --steps 64 --params 200K --tensors 6 --no-sync run >/dev/null
for part in 1 2; do
    "$phema" synth -q --no-sync --sigma-rel 0.1 --part $part/2 run out.safetensors
done
faults="env --default-signal=TERM LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
# shellcheck disable=SC2086 # the shim is several words
slowly() { # what is looked for, ms, calls, path, command: each of these calls on the path takes so long
    at_columns 70 $faults ${4:+FAULT_PATH=$4} FAULT_CALLS="$3" FAULT_PAUSE="$2" "$phema" "${@:5}" >all
    tr '\r' '\n' <all >shown
    grep -oE "^$1" shown | sed -E 's/[0-9]+ %  \[.*\].*left/N %  [...]  N s left/; s/  +N/  N/; s/, [0-9]+ s/, N s/' | sort -u
}
slowly 'comparing +[0-9]+ % +\[.*[0-9] s left' 300 madvise '' diff run/snapshot-0000032-0.050.safetensors run/snapshot-0000064-0.100.safetensors
slowly 'opening the snapshots, [0-9]+ s' 300 openat,open run/ inspect run
slowly 'checking the snapshots, [0-9]+ s' 10 pread,read run/ inspect run
# a call ends when it was shown
FAULT_SHOWN=$PWD/all slowly 'storing, [0-9]+ s' 1500 fsync,rename,renameat2,pread,pwrite out.safetensors join out.safetensors
tail -n 1 shown | tr -d '\r'
