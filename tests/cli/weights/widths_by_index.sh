exec 2>&1
"$phema" weights -q --sigma-rel 0.1 --update-every 5 --input-sigma 0.05 "$fixtures/ema_pytorch/snapshots"
echo "$?"
"$phema" weights --sigma-rel 0.2 --update-every 5 --input-sigma 0.05,0.28 --last 1 "$fixtures/ema_pytorch/snapshots"
echo "$?"
"$phema" weights -q --sigma-rel 0.2 --update-every 5 --input-sigma 0.05,0.5 "$fixtures/ema_pytorch/snapshots"
echo "$?"
