# A terminal shows the pass and the scores that candidates are made for, then the score that the command is asked for.
command -v script >/dev/null || { echo "script is not installed" >&2; exit 77; }
case ${sanitize:-} in *thread*) echo "skipped: not under the thread sanitizer" >&2; exit 77 ;; esac
"$phema" gen -q --count 2 --steps 64 --params 200K --tensors 6 --no-sync run >/dev/null
faults="env --default-signal=TERM LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
cat >evaluate <<'EOT'
#!/bin/bash
# waits until its own line is shown
echo >>asked
until [ "$(tr '\r' '\n' <all | grep -oE 'score [0-9]+ of 20, [^:]*: the command' | sort -u | wc -l)" = "$(wc -l <asked)" ]; do
    sleep 0.05
done
echo 1
EOT
chmod +x evaluate
# shellcheck disable=SC2086 # the shim is several words
at_columns 100 $faults FAULT_PATH=.partial FAULT_CALLS=pwrite FAULT_PAUSE=300 "$phema" search \
    -j 1 --no-sync --sigma-rel 0.05,0.1,0.2 --tolerance 0.5 --batch 3 --input-hash sampled \
    --exec './evaluate {}' run >all
tr '\r' '\n' <all >shown
grep -oE '^pass [0-9]+, score[^%:]*' shown | sed -E 's/ +[0-9]+ *$//' | sort -u
