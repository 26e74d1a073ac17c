# EDM2's own reconstruct_phema.py adds up in float32 and rounds to fp16; on these files a float64 sum
# rounds to the same.
"$phema" synth -q --metric profile --sigma-rel 0.07,0.12,0.2 "$fixtures/edm2/snapshots" out/
for sigma in 0.070 0.120 0.200; do
    "$phema" diff out/phema-0000016-$sigma.safetensors \
        "$fixtures/edm2/reconstructed/phema-0000016-$sigma.safetensors"
done
