# What newcomers write for widths, shapes and times: the command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
"$phema" gen -q --count 4 --steps 64 --params 200 --tensors 2 --input-profile raw raw >/dev/null
synth() {
    remedy synth --no-sync "$@"
    rm -rf out.safetensors averages
}
synth --sigma-rel 10% run out.safetensors
synth --sigma-rel 0.05..0.25 run averages/
synth --sigma-rel '0.1;0.2' run averages/
synth --sigma-rel 0.05-0.25 run averages/
synth --sigma-rel run out.safetensors
synth --sigma-rel 0.5 run out.safetensors
synth run out.safetensors
synth --sigma-rel 0.1 --at last run out.safetensors
synth --sigma-rel 0.1 --at 99999 run out.safetensors
synth --sigma-rel 0.1 --from 9999 run out.safetensors
synth --profile ema run out.safetensors
synth --profile halflife:20 run out.safetensors
synth --profile ema:decay=1.5 run out.safetensors
synth --input-profile raw --profile sma:100 raw out.safetensors
synth --rule attn --sigma-rel 0.1 run out.safetensors
synth --rule attn=0.05 --sigma-rel 0.1 run out.safetensors
