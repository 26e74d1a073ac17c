# Raw parameters lie next to averages. No layout uses them unless --input-profile gives their profile;
# then every layout does. With several averages, the index of an average selects its profile.
"$phema" gen -q --count 2 --raw run >/dev/null
exec 2>&1
"$phema" weights --sigma-rel 0.1 run 2>&1 >/dev/null | grep -e snapshots, -e 'left out'
"$phema" weights --sigma-rel 0.1 --input-profile raw run 2>&1 >/dev/null | grep -e snapshots, -e 'left out'
"$phema" weights -q --profile sma:2 --input-profile raw run
mkdir hf
for step in 2048 4096; do
    mkdir "hf/checkpoint-$step"
    cp "run/snapshot-000$step-raw.safetensors" "hf/checkpoint-$step/model.safetensors"
done
"$phema" weights -q --profile sma:2 --input-profile raw hf
"$phema" weights --profile raw --input-profile ema:decay=0.99 hf 2>&1 >/dev/null | grep '^hf:'
"$phema" weights -q --profile raw hf
"$phema" weights -q --sigma-rel 0.1 --input-profile power:sigma=0.05,update-every=10 \
    --input-profile power:sigma=0.28,update-every=10 "$fixtures/ema_pytorch/snapshots" >profiles
"$phema" weights -q --sigma-rel 0.1 --input-sigma 0.05,0.28 --update-every 10 \
    "$fixtures/ema_pytorch/snapshots" | cmp - profiles && echo the same
"$phema" weights -q --sigma-rel 0.1 --input-profile power:0.05 "$fixtures/ema_pytorch/snapshots"
echo $?
"$phema" weights --sigma-rel 0.1 --update-every 10 --input-profile ema:decay=0.9 hf
echo $?
