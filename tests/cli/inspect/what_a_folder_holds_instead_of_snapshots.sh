# A folder above or below, averages, files of unknown times: the message says what is there, and the
# command after "try:" runs.
mkdir run
"$phema" gen -q --count 4 --steps 64 --params 200 --tensors 2 run/snapshots >/dev/null
"$phema" gen -q --count 1 --steps 64 --params 200 --tensors 2 run/few >/dev/null
"$phema" synth -q --no-sync --sigma-rel 0.08,0.1 run/snapshots averages/ >/dev/null
remedy inspect averages
remedy inspect run
remedy weights --sigma-rel 0.1 run
mkdir -p hf/checkpoint-16 hf/checkpoint-32 plain
bare() { # a checkpoint without metadata
    printf '\x48\x00\x00\x00\x00\x00\x00\x00{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}%17s' '' >"$1"
    head -c 16 /dev/zero | tr '\0' "$2" >>"$1"
}
bare hf/checkpoint-16/model.safetensors a
bare hf/checkpoint-32/model.safetensors b
bare plain/step_16.safetensors a
bare plain/step_32.safetensors b
remedy weights --input-profile raw --profile sma:2 hf/checkpoint-32
remedy weights --profile sma:2 hf
remedy weights --profile sma:2 plain
mkdir empty
"$phema" inspect empty 2>&1
