# Lists of averages whose widths are numbers inside, and EDM2's names for files of torch.save: an average of a stored
# width is the stored one, under the names of the model.
cd "$fixtures/trainers" || exit
out=$OLDPWD/out.safetensors
same() { # SNAPSHOTS KEY NEWEST OPTIONS...
    local snapshots=$1 key=$2 newest=$3
    shift 3
    "$phema" synth -qf --sigma-rel 0.1 "$@" "$snapshots" "$out" >/dev/null
    "$phema" synth -qf --convert --key "$key" "$newest" "$out.stored.safetensors" >/dev/null
    "$phema" diff --tolerance 2e-7 "$out" "$out.stored.safetensors"
}
list() {
    "$phema" inspect --json "$@" 2>/dev/null |
        sed -n 's/^  {"file": "\(.*\)", "time": \([0-9]*\), "sigma_rel": \([^,]*\),.*"spec": "\(.*\)"}.*/  \1 \2 \4/p'
}
same mirai profiles.1 mirai/step_00000200.pt
same power_callback callbacks.EMA.profiles.1.params "power_callback/epoch=0-step=200.ckpt" --exclude net.steps
same power_callback callbacks.EMA.profiles.1.params "power_callback/epoch=0-step=200.ckpt" --exclude net.steps \
    --use averages
same edm2_pt structure_module edm2_pt/phema-0000200-0.100.pt
list mirai
list power_callback
list edm2_pt
# the integer buffer is that of the raw parameters
"$phema" synth -qf --sigma-rel 0.07 power_callback "$out" >/dev/null
"$phema" inspect --tensor net.steps --raw "$out" | od -An -td8
