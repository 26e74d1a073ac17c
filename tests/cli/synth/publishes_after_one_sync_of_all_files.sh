# The outputs of a pass are synced together, then named one by one, and a directory is synced once for all names in
# it. A kill between any two of these calls leaves whole outputs only; a failure leaves those before it on disk.
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
exec 2>&1
"$phema" gen -q --count 3 --steps 30 --params 20k --no-sync run >/dev/null
arguments=(-q --sigma-rel "0.08,0.12,0.16,0.2,0.24" run)
"$phema" synth --no-sync "${arguments[@]}" whole/ >/dev/null
synced() { # command: its calls of fsync
    $faults FAULT_CALLS=fsync FAULT_TOLD="$PWD/told" "$phema" synth "$@" >/dev/null
    cat told
}
left() { # whole outputs, then partial ones
    for file in new/*.safetensors; do [ -e "$file" ] && cmp "$file" "whole/${file##*/}" && echo "${file##*-}"; done | tr '\n' ' '
    ls new | grep -c 'partial$'
}
echo "- five files, their directory and the one that holds it"
synced "${arguments[@]}" new/
synced --force "${arguments[@]}" new/
synced --force --into run/snapshot-0000030-0.100.safetensors "${arguments[@]}" copies/ | sed 's/^/copies with provenances: /'
echo "- killed in a sync of the fifth file, then in that of the directory"
for call in 5 6; do
    rm -rf new && mkdir new
    { $faults FAULT_CALLS=fsync FAULT_WITH=KILL FAULT_AT=$call "$phema" synth "${arguments[@]}" new/; } 2>/dev/null >&2
    echo "status $?: $(left)"
done
echo "- a file that does not reach the disk"
rm -rf new
$faults FAULT_CALLS=fsync FAULT_PATH=-0.200.safetensors.partial FAULT_WITH=EIO FAULT_AT=1 "$phema" synth "${arguments[@]}" new/
echo "status $?: $(left)"
echo "- a directory that does not"
rm -rf new && mkdir new
$faults FAULT_CALLS=fsync FAULT_WITH=EIO FAULT_AT=6 "$phema" synth "${arguments[@]}" new/
echo "status $?: $(left)"
echo "- a name that another program takes meanwhile: the names before it are synced all the same"
rm -rf new && mkdir new && : >go
$faults FAULT_CALLS=fsync FAULT_TOLD="$PWD/told" FAULT_PAUSE=20000 FAULT_SHOWN="$PWD/go" "$phema" synth "${arguments[@]}" new/ &
until [ "$(ls new | grep -c 'partial$')" = 5 ]; do sleep 0.01; done
name=$(ls new | grep -e '-0.200.safetensors.partial$')
echo taken >"new/${name%.partial}"
while kill -0 $! 2>/dev/null; do echo >>go; sleep 0.01; done
wait $!
echo "status $?: $(cat told) syncs, $(ls new | wc -l) files, $(cat "new/${name%.partial}")"
