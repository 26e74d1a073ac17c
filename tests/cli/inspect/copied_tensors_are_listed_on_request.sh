"$phema" inspect -v "$fixtures/posthoc_ema/snapshots" >/dev/null
