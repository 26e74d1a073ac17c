# NaN and infinities in snapshots are written, counted and reported. With --nan error the run ends, names the
# tensor and leaves nothing.
"$phema" gen -q --count 2 run >/dev/null
printf '\0\0\300\177' | dd of=run/snapshot-0004096-0.050.safetensors bs=1 conv=notrunc status=none \
    seek=$(($(stat -c %s run/snapshot-0004096-0.050.safetensors) - 4))
"$phema" synth -q --nan keep --sigma-rel 0.1 run out.safetensors
echo "status $?"
"$phema" synth -q --nan error --sigma-rel 0.1,0.2 run sweep/
echo "status $?"
"$phema" synth -q --nan error --sigma-rel 0.1 run other.safetensors
echo "status $?"
"$phema" synth -q --nan error --from 2048 --to 2048 --sigma-rel 0.1 run finite.safetensors
echo "status $?"
ls
