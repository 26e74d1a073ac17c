# EDM2 also saves snapshots of image 0. Its own reconstruction ignores them, and so does synth.
cp -r "$fixtures/edm2/snapshots" run
for sigma in 0.050 0.100; do
    cp run/network-snapshot-0000004-$sigma.pkl run/network-snapshot-0000000-$sigma.pkl
done
"$phema" synth --no-sync --sigma-rel 0.12 run with.safetensors 2>&1 >/dev/null | grep -A 1 'left out'
"$phema" synth -q --no-sync --sigma-rel 0.12 "$fixtures/edm2/snapshots" without.safetensors
"$phema" diff with.safetensors without.safetensors
