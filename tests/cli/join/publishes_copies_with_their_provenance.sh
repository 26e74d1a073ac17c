# A copy and its provenance appear as one. Wherever the join is killed or fails, no file is torn, no copy lacks its
# provenance, and the same command finishes.
[[ $sanitize = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
exec 2>&1
snapshots=(--input-sigma "0.05,0.28" --update-every 5 "$fixtures/ema_pytorch/snapshots")
"$phema" synth -q --no-sync --sigma-rel 0.1 "${snapshots[@]}" one.pt
"$phema" synth -q --no-sync --sigma-rel 0.2 "${snapshots[@]}" old.pt
parts() { for i in 3 1 2; do "$phema" synth -q --no-sync --part $i/3 "$@" --sigma-rel 0.1 "${snapshots[@]}" out.pt || echo "status $?"; done; }
is_whole() { # nothing, the old pair, or the new one; a provenance may be ahead of its copy
    if [ ! -e out.pt ]; then
        [ ! -e out.pt.json ] || cmp one.pt.json out.pt.json || echo "torn provenance"
    elif cmp -s one.pt out.pt; then
        cmp one.pt.json out.pt.json || echo "another provenance"
    else
        cmp old.pt out.pt || echo "torn"
        cmp -s old.pt.json out.pt.json || cmp one.pt.json out.pt.json || echo "torn provenance"
    fi
}
finish() { # OPTIONS OF join: what it leaves
    "$phema" join -q --no-sync "$@" out.pt >/dev/null || echo "status $?"
    cmp one.pt out.pt && cmp one.pt.json out.pt.json && echo "joined: $(echo out*)"
}
for call in rename,renameat2:1 rename,renameat2:2 unlink:1 unlink:2 unlink:3 pwrite,pwrite64:1; do
    for replaces in "" -f; do
        [ -n "$replaces" ] && cp old.pt out.pt && cp old.pt.json out.pt.json
        parts ${replaces:+--force}
        # shellcheck disable=SC2086 # words
        { $faults FAULT_CALLS="${call%:*}" FAULT_WITH=KILL FAULT_AT="${call#*:}" "$phema" join -q --no-sync $replaces out.pt >/dev/null; } 2>/dev/null
        echo "killed before ${call%%[,:]*} ${call#*:} $replaces: $(echo out*)"
        is_whole
        # shellcheck disable=SC2086
        finish $replaces
        rm out*
    done
done
echo "- the provenance is there before the copy: its parts may be written again"
parts
{ $faults FAULT_CALLS=rename,renameat2 FAULT_WITH=KILL FAULT_AT=2 "$phema" join -q --no-sync out.pt >/dev/null; } 2>/dev/null
parts
finish
rm out*
echo "- a full disk, and names that cannot be changed: the parts stay, and so does an old pair"
while read -r calls path what; do
    cp old.pt out.pt && cp old.pt.json out.pt.json
    parts --force
    $faults FAULT_CALLS="$calls" FAULT_PATH="$path" FAULT_WITH="$what" FAULT_AT=1 FAULT_STAYS=1 "$phema" join -q --no-sync -f out.pt
    echo "status $?: $(echo out*)"
    cmp old.pt out.pt && cmp old.pt.json out.pt.json
    finish -f
    rm out*
done <<'end'
pwrite,pwrite64 out.pt.json.partial ENOSPC
rename,renameat2 out.pt.json.partial EIO
rename,renameat2 out.pt.partial EIO
end
echo "- markers with another text, place or checksum than the parts have written"
parts
sed -i 's/"sidecar": "./"sidecar": "/' out.pt.part-1-of-3
"$phema" join -q out.pt
echo "status $?"
parts
sed -i '/"sidecar":/d' out.pt.part-1-of-3
"$phema" join -q out.pt
echo "status $?"
parts
sed -i '0,/"at": [0-9]*/s//"at": 100/' out.pt.part-?-of-3
"$phema" join -q out.pt
echo "status $?"
parts
finish
