# A .pt of ema-pytorch has "ema_model." before the names and two counters; the same average in safetensors has not.
for out in made.pt made.safetensors; do
    "$phema" synth -q --no-sync --input-sigma 0.05,0.28 --update-every 5 --sigma-rel 0.1 \
        "$fixtures/ema_pytorch/snapshots" $out
done
"$phema" diff made.pt made.safetensors 2>&1
echo "status $?"
"$phema" diff made.safetensors made.pt 2>&1
echo "status $?"
"$phema" diff made.safetensors "$fixtures/ema_pytorch/snapshots/0.300.pt" 2>&1 | tail -n 1
