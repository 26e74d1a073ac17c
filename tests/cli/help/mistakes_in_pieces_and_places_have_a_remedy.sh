# Values in pieces or brackets, words in another verb's place, outputs that cannot be, units of other programs: the
# command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.1 run made.safetensors >/dev/null
synth() {
    remedy synth --no-sync "$@"
    rm -rf out* ./-.safetensors averages
}
wide() { synth "$@" run out.safetensors; }
synth --sigma-rel 0.1 0.2 run out/
synth --sigma-rel '[0.1,0.2]' run out/
synth --sigma-rel '0.1 , 0.2' run out/
synth --sigma-rel 0,05:0,25:0,05 run out/
wide --sigma-rel '{0.1}'
wide --sigma-rel 10
wide --sigma-rel 0.1 --gamma 6.94
wide --sigma-rel 0.1 --dtype fp8
wide --sigma-rel 0.1 --verbose=2
wide --sigma-rel 0.1 --max-ram 64 MB
wide --sigma-rel 0.1 --threads all
wide --sigma-rel 0.1 --at 50%
wide --sigma-rel 0.1 --exclude '*'
wide --sigma-rel 0.1 --exclude .
wide --sigma-rel 0.1 --ridge abc
wide --sigma-rel 0.1 --metric paper
wide --sigma-rel 0.1 --color yes
wide --sigma-rel 0.1 --progress off
wide --sigma-rel 0.1 --key ema.
synth --sigma-rel 0.1 --level max run out.safetensors.zst
synth --sigma-rel 0.1 --into run out.safetensors
synth --sigma-rel 0.1 run out.gguf
synth --sigma-rel 0.1 run out
synth --sigma-rel 0.1 run -
synth --sigma-rel 0.1 run run/snapshot-0000064-0.100.safetensors
synth --sigma-rel 0.1 @run out.safetensors
synth --sigma-rel 0.1 run.tar.gz out.safetensors
remedy synth inspect run
remedy synth --version
remedy --completion bash
remedy verify made.safetensors run
remedy verify run/snapshot-0000064-0.100.safetensors
remedy diff made.safetensors run
remedy inspect made.safetensor
remedy inspect --tensors run
remedy plot profile run
remedy report run
remedy weights --sigma-rel 0.1 run out.json
remedy search --exec "sh -c 'echo 1' {}" --sigma-rel 0.05:0.2 --budget 7 run found/
remedy convert 0.1 0.2
remedy convert --half-life 5000 --at 10
remedy gen --truth 15% --count 2 --params 200 --tensors 2 new
remedy gen --count 0 other
remedy design --until 1M --model 2.6G --disk 500 --sigma-rel 0.1
remedy design --until 1M --model 2.6G --disk 500G
