# No summary, no error to expect: OUT is checked when the newest snapshot is known.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
for out in o1 o1.gguf o1.bin o1.npz o1.ckpt o1.pkl; do
    remedy synth --no-sync --sigma-rel 0.1 run $out
    "$phema" synth --sigma-rel 0.1 run $out 2>&1 | grep 'error expected\|snapshots,'
    rm -rf o1*
done
"$phema" synth --sigma-rel 0.1 run 'o{sigma' 2>&1
remedy synth --no-sync --sigma-rel 0.1 run run/snapshot-0000064-0.100.safetensors
ls
