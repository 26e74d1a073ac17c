# plan -v shows how Lustre stripes a snapshot and the directory of OUT; elsewhere it has no such lines.
shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 2 --steps 20 --params 5k --dtype f32 --no-sync run >/dev/null
mkdir sweep
# lov_user_md_v1: magic, RAID0, identity, 4 MiB, 8 stripes, generation
printf '\320\013\321\013\001\0\0\0%16s\0\0\100\0\010\0\0\0' '' >stripes
plan() { "$phema" plan -q --sigma-rel 0.1 "$@" | grep stripes; }
export LD_PRELOAD="$shim"
echo "- elsewhere"
plan -v run out.safetensors
export SHIM_STRIPES=$PWD/stripes
echo "- a file"
plan -v run out.safetensors
echo "- a directory that exists, and one that does not"
plan -v run sweep/
plan -v run other/
echo "- no OUT, and without -v"
plan -v run
plan run out.safetensors
printf '\320\013\327\013' >stripes
echo "- another layout"
plan -v run
