# With all tensors selected, the state of the optimizer is copied.
"$phema" weights -v --key . --input-sigma 0.1 --sigma-rel 0.1 "$fixtures/lightning/ema_state_dict" \
    2>&1 | grep -e optimizer -e snapshot
"$phema" weights -v --key optimizer_states --input-sigma 0.1 --sigma-rel 0.1 \
    "$fixtures/lightning/ema_state_dict" 2>&1 | grep -e optimizer -e snapshot
# The name of a file does not determine its contents.
mkdir run
cp "$fixtures/edm2_state/training-state-0000004.pt" "run/step=4.ckpt"
"$phema" weights --key net --input-sigma 0.1 --sigma-rel 0.1 run 2>&1 | grep -e subtree -e snapshot
"$phema" weights --key nothing --input-sigma 0.1 --sigma-rel 0.1 run 2>&1
