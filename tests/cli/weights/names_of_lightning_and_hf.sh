exec 2>&1
shown() {
    "$phema" weights -q --json "$@" | grep '"file"' || "$phema" weights "$@"
}
mkdir lightning hf
source="$fixtures/lightning/stds_emas/epoch=1-step=200.ckpt"
cp "$source" lightning/last.ckpt
cp "$source" "lightning/epoch=1-step=200-v1.ckpt"
"$phema" weights --sigma-rel 0.07 lightning
mv "lightning/epoch=1-step=200-v1.ckpt" "lightning/run-epoch=1-step=200-val_loss=0.31.ckpt"
shown --sigma-rel 0.07 lightning
mv "lightning/run-epoch=1-step=200-val_loss=0.31.ckpt" "lightning/step=200.ckpt"
shown --sigma-rel 0.07 lightning

# The Trainer's directories: their other files are no models.
for step in 500 1000; do
    mkdir hf/checkpoint-$step
    cp "$fixtures/torch/plain.pt" hf/checkpoint-$step/pytorch_model.bin
    cp "$fixtures/torch/nested.pt" hf/checkpoint-$step/optimizer.pt
    cp "$fixtures/torch/nested.pt" hf/checkpoint-$step/rng_state_0.pth
    echo '{}' >hf/checkpoint-$step/trainer_state.json
done
"$phema" weights --sigma-rel 0.07 hf
"$phema" weights --sigma-rel 0.07 --input-sigma 0.05 hf
cp "$fixtures"/sharded/* hf/checkpoint-500
rm hf/checkpoint-500/pytorch_model.bin
rm -r hf/checkpoint-1000
"$phema" weights --sigma-rel 0.05 --input-sigma 0.05 hf
