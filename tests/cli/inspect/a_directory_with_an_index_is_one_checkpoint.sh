"$phema" inspect "$fixtures/sharded"
"$phema" inspect "$fixtures/sharded" | tail -n +2 |
    cmp - <("$phema" inspect "$fixtures/sharded/model.safetensors.index.json" | tail -n +2)
"$phema" inspect --json "$fixtures/sharded" | grep -c '"file": "model-0000[123]-of-00003.safetensors"'
