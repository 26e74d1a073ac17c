# A simulated device, whose memory is that of the host, makes the same bytes as the CPU. This holds for any
# format, form, number of devices and number of threads.
mkdir bin
cp "$phema" bin/posthoc-ema
cp "$sim" bin/posthoc-ema-cuda.so
gpu=bin/posthoc-ema
$gpu gen --quiet --count 6 --dtype f16 --steps 64 --params 60k run >/dev/null
run() { # device, what else
    "$gpu" synth --quiet --force --device "$@" >/dev/null
}
same() { # what, options
    local what=$1
    shift
    run cpu "$@" run "cpu$form"
    run cuda "$@" run "cuda$form"
    diff -r "cpu$form" "cuda$form" >/dev/null && echo "same: $what" || echo "DIFFERENT: $what"
}
form=.safetensors
same 'one target' --sigma-rel 0.1
same 'mapped' --sigma-rel 0.1 --io mmap
same 'past the page cache' --sigma-rel 0.1 --io direct
same 'float32' --sigma-rel 0.1 --dtype f32
same 'sums in float32' --sigma-rel 0.1 --accumulate f32
same 'one thread' --sigma-rel 0.1 --threads 1
same 'little memory' --sigma-rel 0.1 --gpu-memory 1M
same 'a rule' --sigma-rel 0.1 --rule 'bias=0.2' --rule '\.1\.=copy'
form=/
same 'many targets' --sigma-rel 0.05:0.25:0.01
export SIM_DEVICES=2
run cpu --sigma-rel 0.05:0.25:0.05 run cpu/
for device in cuda:all cuda:1 cuda:1,0; do
    run $device --sigma-rel 0.05:0.25:0.05 run cuda/
    diff -r cpu cuda >/dev/null && echo "same: $device"
done
unset SIM_DEVICES

# compressed snapshots are read in turns
mkdir packed
for file in run/*.safetensors; do
    zstd -q "$file" -o "packed/$(basename "$file").zst"
done
"$gpu" synth --quiet --force --device cuda --sigma-rel 0.1 packed zst.safetensors >/dev/null
"$gpu" synth --quiet --force --sigma-rel 0.1 packed cpu.zst.safetensors >/dev/null
"$gpu" diff --json zst.safetensors cpu.zst.safetensors | grep '"equal"'

# one part on the device, the other on the CPU
"$gpu" synth --quiet --part 1/2 --device cuda --sigma-rel 0.1 run parts.safetensors
"$gpu" synth --quiet --part 2/2 --device cpu --sigma-rel 0.1 run parts.safetensors
"$gpu" join --quiet parts.safetensors >/dev/null
"$gpu" synth --quiet --sigma-rel 0.1 run whole.safetensors >/dev/null
cmp parts.safetensors whole.safetensors && echo 'same: parts'
"$gpu" verify parts.safetensors | sed 's/[0-9]* elements.*//'

# cuBLAS sums may differ by rounding; verify accepts them only where it can recompute them
"$gpu" synth --quiet --device cuda --gpu-sums cublas --dtype f32 --sigma-rel 0.05:0.25:0.01 run blas/ >/dev/null
"$gpu" verify blas/phema-0000064-0.100.safetensors | sed 's/[0-9]* elements.*//'
SIM_DRIVER=none "$gpu" verify blas/phema-0000064-0.100.safetensors
echo $?
"$gpu" synth --quiet --dtype f32 --sigma-rel 0.1 run exact.safetensors >/dev/null
"$gpu" diff --tolerance 1e-7 exact.safetensors blas/phema-0000064-0.100.safetensors >/dev/null && echo near
"$gpu" synth --quiet --gpu-sums cublas --sigma-rel 0.1 run no.safetensors
echo $?
