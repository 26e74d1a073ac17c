# A distributed checkpoint is a new directory of dtypes that torch has.
exec 2>&1
"$phema" gen -q --count 2 --steps 8 --params 4k --tensors 3 --no-sync run >/dev/null
make() { "$phema" synth -q --no-sync --sigma-rel 0.1 "$@"; echo "status $?"; }
make --ranks 2 run out.safetensors
make --ranks 2 --shard-size 1k run out/
make --ranks 2 --into run/snapshot-0000008-0.050.safetensors run out/
make --ranks 0 run out/
make --ranks 4097 run out/
echo "- --force, --skip-existing"
make --ranks 2 run out/
make --ranks 2 run out/
make --ranks 3 --skip-existing run out/
"$phema" synth --no-sync --sigma-rel 0.1 --ranks 2 --skip-existing run out/ 2>&1 | grep date
make --ranks 1 --force run out/
mkdir out/folder
make --ranks 1 --force run out/
echo "- a dtype that torch does not have"
header='{"x":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}  '
{ printf '%b' "\\$(printf %03o ${#header})\0\0\0\0\0\0\0"; printf %s "${header}xx"; } >f4.safetensors
"$phema" synth -q --no-sync --convert --ranks 1 f4.safetensors new/
echo "status $?"
ls
