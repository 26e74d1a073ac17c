# ema_state_dict, and the averages of LitEma under the names that they have in the model. torch computed
# expected/. These files record no width.
for kind in ema_state_dict ldm; do
    printf 'epoch=0-step=100.ckpt 0.25\nepoch=1-step=200.ckpt 0.75\n' >weights.txt
    "$phema" synth --no-sync --weights weights.txt "$fixtures/lightning/$kind" $kind.safetensors 2>notes
    grep -e snapshots -e subtree -e 'without dots' notes
    "$phema" diff $kind.safetensors "$fixtures/lightning/expected/$kind.safetensors" &&
        "$phema" inspect $kind.safetensors | grep 'B  [a-z]'
done
"$phema" weights --sigma-rel 0.1 "$fixtures/lightning/ldm" 2>&1
echo $?
"$phema" weights --input-sigma 0.1 --sigma-rel 0.1 "$fixtures/lightning/ldm" 2>/dev/null
