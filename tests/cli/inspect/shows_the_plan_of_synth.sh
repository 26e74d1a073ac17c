# Tensors are averaged, copied for a reason, or left out: in a file, in the chosen subtree, in a series.
"$phema" inspect "$fixtures/ema_pytorch/snapshots/0.50.pt" | sed -n '/by synth/,/^$/p'
"$phema" inspect --key . "$fixtures/ema_pytorch/snapshots/0.50.pt" | sed -n '/by synth/,/^$/p'
"$phema" inspect --key no_such "$fixtures/ema_pytorch/snapshots/0.50.pt" | grep 'no snapshot'
"$phema" inspect --json "$fixtures/ema_pytorch/snapshots/0.50.pt" |
    sed -n 's/.*"name": "\([^"]*\)".*\("rule".*\)},*/\1: \2/p; /"key"/,$p'
"$phema" inspect -qv "$fixtures/ema_pytorch/snapshots" | sed -n '/^ *dtype/,$p'
"$phema" inspect -q --json "$fixtures/ema_pytorch/snapshots" | sed -n '/"tensors"/,$p'
