"$phema" inspect "$fixtures/edm2_state"
"$phema" inspect --json "$fixtures/lightning/stds_emas" | sed "/\"total\"/d"
