# Raw parameters in bfloat16, in pieces and whole, are widened as they are read: the same bytes with any I/O, any
# processor, and weights as a list; verify makes them again.
for run in cosmos_dcp cosmos_pt titan_multi_2ranks; do
    snapshots="$fixtures/trainers/$run/checkpoints"
    [ -d "$snapshots" ] || snapshots="$fixtures/trainers/$run/checkpoint"
    make() { # NAME OPTIONS...
        "$phema" synth -qf --no-sync --sigma-rel 0.07 "$snapshots" "${@:2}" "$1.safetensors" >/dev/null
    }
    make first
    for io in mmap read direct; do
        make "$io" --io "$io" && cmp first.safetensors "$io.safetensors"
    done
    PHEMA_CPU=ref make ref --threads 1 && cmp first.safetensors ref.safetensors
    "$phema" verify first.safetensors | sed 's/.*: equal/equal/'
    "$phema" weights --json -q --sigma-rel 0.07 "$snapshots" >weights.json
    "$phema" synth -qf --weights weights.json "$snapshots" listed.safetensors >/dev/null
    "$phema" diff listed.safetensors first.safetensors
done
# one snapshot alone, by its name: bfloat16 becomes float32 without a change
printf '%s:raw 1\n' iter_000000240.pt >weights.txt
"$phema" synth -qf --weights weights.txt "$fixtures/trainers/cosmos_pt/checkpoints" raw.safetensors >/dev/null
"$phema" synth -qf --convert --key model.net --dtype f32 "$fixtures/trainers/cosmos_pt/checkpoints/iter_000000240.pt" \
    converted.safetensors >/dev/null
"$phema" diff raw.safetensors converted.safetensors
for use in raw averages; do
    "$phema" weights --json -q --sigma-rel 0.1 --use "$use" "$fixtures/trainers/flux_action" |
        sed -n 's/.*"file": "\([^"]*\)".*"sigma_rel": \([^,]*\),.*"spec": "\([^"]*\)".*/\1 \3/p' | sort -u
done
