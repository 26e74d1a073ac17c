"$phema" gen -q --count 8 run >/dev/null
echo "snapshot-0000512-0.050.safetensors 1" >list
for at in 0 4097 99999999; do
    "$phema" weights -q --weights list --at $at run
    echo $?
done
"$phema" weights -q --json --sigma-rel 0.1 --at 2048 run >json
"$phema" weights -q --weights json --at 4096 run
echo $?
sed 's/snapshot-0001024-0.050/snapshot-0000512-0.050/' json >twice
"$phema" weights -q --weights twice run
echo $?
echo '{"snapshots": [], "targets": [{"weights": []}]}' >none
"$phema" weights -q --weights none run
echo $?
sed 's/"version": 1/"version": 99/' json >newer
"$phema" weights -q --weights newer run
echo $?
