# MLX writes "__metadata__":null into files without metadata: synth converts them, averages them, and writes into them.
mlx=$fixtures/safetensors/mlx.safetensors
for time in 100 200; do cp "$mlx" run-$time-0.050.safetensors; done
"$phema" synth -q --convert "$mlx" converted.safetensors && "$phema" diff "$mlx" converted.safetensors
"$phema" synth -q --name-regex '-(?<time>[0-9]+)-(?<sigma>[0-9.]+)[.]s' --sigma-rel 0.1 --checks off . average.safetensors
"$phema" diff "$mlx" average.safetensors
"$phema" synth -q --name-regex '-(?<time>[0-9]+)-(?<sigma>[0-9.]+)[.]s' --sigma-rel 0.1 --checks off --into "$mlx" . into.safetensors
"$phema" diff "$mlx" into.safetensors
"$phema" inspect "$mlx" | head -n 2
