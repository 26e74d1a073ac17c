# Control characters of names must not reach a terminal; JSON keeps the names unchanged.
"$phema" inspect "$fixtures/safetensors/names.safetensors"
"$phema" inspect --json "$fixtures/safetensors/names.safetensors" | sed -n 's/.*"name": \(.*\), "dtype".*/\1/p'
