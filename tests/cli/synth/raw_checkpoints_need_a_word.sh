# Checkpoints of trainers that save raw weights, and files with nothing but a time in their names.
file() { # letter that fills its tensor
    printf '\x40\0\0\0\0\0\0\0%-64s' '{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    head -c 16 /dev/zero | tr '\0' "$1"
}
mkdir hf plain odd
step=0
for letter in a b c d; do
    ((step += 16))
    mkdir hf/checkpoint-$step
    file $letter >hf/checkpoint-$step/model-00001-of-00001.safetensors
    echo '{"metadata":{},"weight_map":{"w":"model-00001-of-00001.safetensors"}}' >hf/checkpoint-$step/model.safetensors.index.json
    file $letter >plain/step_$step.safetensors
    file $letter >odd/ckpt-$letter.safetensors
done
remedy synth --no-sync --profile sma:4 hf merged
remedy synth --no-sync --profile sma:4 plain merged.safetensors
remedy inspect plain
remedy inspect odd
# One file each: OUT without an ending gets a slash at the same time, so that the command runs.
for step in 16 32 48 64; do
    mkdir -p single/checkpoint-$step
    mv plain/step_$step.safetensors single/checkpoint-$step/model.safetensors
done
remedy synth --no-sync --profile sma:4 single averaged
remedy plan --profile sma:4 single averaged.d/out
