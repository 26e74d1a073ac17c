# Names of files and folders that are not what was meant: the command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
cp -r run 'my run'
cp run/snapshot-0000064-0.100.safetensors one.safetensors
synth() {
    remedy synth --no-sync "$@"
    rm -rf out.* averages model
}
synth --sigma-rel 0.1 runn out.safetensors
synth --sigma-rel 0.1 my run out.safetensors
synth --sigma-rel 0.1 'run/*.safetensors' out.safetensors
synth --sigma-rel 0.1 run/snapshot-0000064-0.100.safetensors out.safetensors
synth --sigma-rel 0.1 one.safetensors out.safetensors
synth --sigma-rel 0.05,0.1 run
synth --sigma-rel 0.1 run nowhere/out.safetensors
synth --sigma-rel 0.1 --shard-size 1M run out.safetensors
synth --sigma-rel 0.1 --include nosuch run out.safetensors
remedy verify one.safetensors
remedy report run page.html
remedy report -o page.pdf run
remedy plot error run
remedy plot errors run -o e.svg
rm plot.svg
remedy plot error run -o e.jpg
remedy gen --count 2 --steps 64 --params 200 --tensors 2 run
