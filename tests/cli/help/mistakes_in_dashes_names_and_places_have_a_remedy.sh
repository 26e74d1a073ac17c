# Dashes of word processors, one dash, capitals, files in place of directories, several checkpoints in place of
# one, empty words: the command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.08,0.1 run two/ >/dev/null
touch file
printf 'run/%s\n' snapshot-0000064-0.050.safetensors snapshot-0000064-0.100.safetensors >list.txt
synth() {
    remedy synth --no-sync "$@"
    rm -rf out.safetensors* made
}
synth –sigma-rel 0.1 run out.safetensors
synth —sigma-rel=0.1 run out.safetensors
synth -sigma-rel 0.1 run out.safetensors
remedy SYNTH --no-sync --sigma-rel 0.1 run out.safetensors
rm out.safetensors
synth --sigma-rel
synth --sigma-rel 0.1 run ''
"$phema" synth --sigma-rel 0.1 '' out.safetensors 2>&1
synth --sigma-rel 0.25:0.05:0.05 run made/
synth --gamma abc run out.safetensors
synth --gamma -1 run out.safetensors
synth --sigma-rel 0.1 --level 99 run out.safetensors.zst
synth --sigma-rel 0.1 --key nosuch run out.safetensors
synth --sigma-rel 0.1 --reset-at 1M run out.safetensors
synth --sigma-rel 0.1 run file/
synth --sigma-rel 0.1 run file/x.safetensors
rm -rf averages x.safetensors
synth --sigma-rel 0.1 run 'out-{width}.safetensors'
rm -rf averages
synth --sigma-rel 0.08,0.1 run 'out-{time}.safetensors'
remedy weights --sigma-rel 0.1 list.txt
remedy verify two
remedy verify two/*
remedy verify run
remedy inspect --raw --tensor nosuch run/snapshot-0000064-0.100.safetensors
remedy gen --steps 64 --truth 0.5 made
remedy convert
remedy convert sigma-rel 0.1
remedy convert --sigma-rel 0.4
remedy plot error run -o nowhere/e.svg
remedy report run -o nowhere/page.html
remedy search --exec "sh -c 'echo 1' {}" --sigma-rel 0.05:0.2 run out.safetensors
remedy search --exec "sh -c 'echo 1' {}" --sigma-rel 0.2:0.05 run found/
"$phema" search --exec 'true {}' --budget 3 --sigma-rel 0.05:0.2 run found/ 2>&1
mkdir plain
for i in 1 2; do cp run/snapshot-0000064-0.100.safetensors plain/step_$i.safetensors; done
"$phema" weights --input-profile raw --profile sma:2 --name-regex 'step_([0-9]+)' plain 2>&1
echo "status $?"
