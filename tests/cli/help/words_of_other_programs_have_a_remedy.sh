# Verbs and options as other programs call them, values that were forgotten, operands in another order, and slips in
# SPECs: the command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
synth() {
    remedy synth --no-sync "$@"
    rm -rf out.safetensors*
}
remedy ls run
remedy merge --no-sync --sigma-rel 0.1 run out.safetensors
rm out.safetensors
synth --sigma-rel 0.1 out.safetensors run
synth out.safetensors --sigma-rel 0.1 run
synth --output out.safetensors --sigma-rel 0.1 run
synth --output=out.safetensors --sigma-rel 0.1 run
synth -oout.safetensors --sigma-rel 0.1 run
synth --ema 0.9 run out.safetensors
synth --half-life 20 run out.safetensors
synth --profile ema:0.9 run out.safetensors
synth --profile ema:halflife=20 run out.safetensors
synth --profile raw-ema:20 run out.safetensors
synth --jobs 2 --sigma-rel 0.1 run out.safetensors
synth -j --sigma-rel 0.1 run out.safetensors
synth --sigma-rel --force run out.safetensors
synth --rule '0=:0.05' --sigma-rel 0.1 run out.safetensors
synth --rule '0:0.05' --sigma-rel 0.1 run out.safetensors
synth --schedule cosin --sigma-rel 0.1 run out.safetensors
synth --reset-at 32,count --sigma-rel 0.1 run out.safetensors
synth --name-regex '(' --sigma-rel 0.1 run out.safetensors
remedy gen --width 0.05 new
remedy plot run
remedy plot error run o.svg
remedy convert --gamma -0.6
remedy convert --decay 1.5 --at 100
remedy weights --advise --sigma-rel 0.1 run
remedy design --disk 500G
remedy design --steps 1M --model 2.6G --disk 500G --sigma-rel 0.1
remedy design --until 1M --model 2.6G --disk 1G --sigma-rel 0.1
remedy design --until 1M --model 2.6G --disk 500G --sigma-rel 0.1 --max-widths 9
"$phema" help -h | sed -n 1p
