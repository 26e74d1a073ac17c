# The expected values are the library's own results from the weights it used. Its float32 sums differ from ours by
# a few units of 2^-24. Counters and integers are not averages (fixtures/README.md).
for sigma in 0.10 0.15 0.20; do
    "$phema" synth -q --weights "$fixtures/ema_pytorch/weights_$sigma.txt" --dtype f32 \
        "$fixtures/ema_pytorch/snapshots" out-$sigma.safetensors
    "$phema" diff -v out-$sigma.safetensors "$fixtures/ema_pytorch/synthesized_$sigma.safetensors" |
        awk '$NF ~ /^(fc|gain|norm\.)/ && $NF !~ /num_batches/ { n++; if (!($1 < 5e-7)) print "far:", $0 }
             END { print n, "tensors compared" }'
done
