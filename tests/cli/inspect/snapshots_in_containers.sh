# Times, widths and profiles of checkpoints that hold raw parameters beside averages of them.
cd "$fixtures/trainers" || exit
"$phema" inspect titan/checkpoint 2>&1 | grep -v '    0.01\|error'
for run in titan_multi_2ranks/checkpoint titan_every4/checkpoint titan_floor/checkpoint cosmos_pt/checkpoints \
    cosmos_dcp/checkpoints flux_action lightning_ema/checkpoints megatron mirai power_callback edm2_pt; do
    echo "== $run"
    "$phema" inspect --json "$run" 2>/dev/null |
        sed -n -e '/"layout"\|"unit"\|"times"\|"from"/p' \
            -e 's/^  {"file": "\(.*\)", "time": \([0-9]*\), "sigma_rel": \([^,]*\),.*"spec": "\(.*\)"}.*/\1 \2 \3 \4/p' \
            -e 's/^  {"rule".*/&/p'
done
"$phema" inspect flux_action/step-100 | sed -n '/by synth/,/^$/p'
"$phema" inspect --json titan_multi_2ranks/checkpoint/step-160 | sed -n '/"snapshots"/,/]/p'
