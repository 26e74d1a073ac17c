"$phema" inspect "$fixtures/ema_pytorch/snapshots"
"$phema" inspect -q --json "$fixtures/posthoc_ema/snapshots" | head -n 8
