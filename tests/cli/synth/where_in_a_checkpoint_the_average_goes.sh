# The names in the snapshots begin at the root, and the checkpoint holds the model twice. --key then means a subtree
# of the checkpoint, and a message names the subtree that is replaced.
mkdir run
for step in 100 200; do
    "$phema" synth -q --convert --key ema_state_dict \
        "$fixtures/lightning/ema_state_dict/epoch=$((step / 100 - 1))-step=$step.ckpt" \
        run/s-$step-0.10.safetensors
done
into=$fixtures/lightning/ema_state_dict/epoch=0-step=100.ckpt
for file in run/*; do echo "$(basename "$file") 0.5"; done >half.txt
replaced() { # copy
    "$phema" diff -v "$1" "$into" | awk '$1 + 0 > 0 && $NF ~ /net/ { print $NF }'
}
"$phema" synth --weights half.txt --into "$into" run one.ckpt 2>&1 | grep replacing
replaced one.ckpt
"$phema" synth --weights half.txt --into "$into" --key ema_state_dict run two.ckpt 2>&1 | grep replacing
replaced two.ckpt
"$phema" synth -q --weights half.txt --into "$into" --key nosuch run three.ckpt
echo "status $?"
ls
