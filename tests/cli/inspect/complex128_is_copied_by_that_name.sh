"$phema" inspect "$fixtures/torch/dtypes.pt" | grep -E 'averaged|copied'
