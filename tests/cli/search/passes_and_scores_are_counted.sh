# A terminal shows the pass and the scores that candidates are made for, then the score that the command is asked for.
command -v script >/dev/null || { echo "script is not installed" >&2; exit 77; }
case ${sanitize:-} in *thread*) echo "skipped: not under the thread sanitizer" >&2; exit 77 ;; esac
"$phema" gen -q --count 2 --steps 64 --params 200K --tensors 6 --no-sync run >/dev/null
faults="env --default-signal=TERM LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
# shellcheck disable=SC2086 # the shim is several words
at_columns 100 $faults FAULT_PATH=run/ FAULT_CALLS=pread,read,preadv FAULT_PAUSE=20 "$phema" search \
    -j 1 --no-sync --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --batch 3 --input-hash sampled \
    --exec "sh -c 'sleep 0.3; echo 1' sh {}" run >all
tr '\r' '\n' <all >shown
grep -oE '^pass [0-9]+, score[^%:]*' shown | sed -E 's/ +[0-9]+ *$//' | sort -u
