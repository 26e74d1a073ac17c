# Outputs of other shapes have names of their own and record their profile. The command in each output makes
# that output alone, with the same bytes. As snapshots they are left out, like all outputs.
"$phema" gen -q --count 4 run >/dev/null
"$phema" synth -q --sigma-rel 0.1 --profile window:500 --profile 'ema:decay=0.99 - power:gamma=3' \
    --at 1750,2000 run out/
"$phema" synth -q --profile edm-ema:200 run 'x-{profile}.safetensors'
"$phema" synth -q --profile edm-ema:200 --profile diffusers:0.99 run 'y-{time}-{sigma}.safetensors'
for file in out/*; do
    "$phema" inspect --json "$file" | grep -o '"posthoc_ema.profile": "[^"]*"'
    command=$("$phema" inspect --json "$file" | sed -n 's/.*\\"command\\":\\"\([^\\]*\)\\".*/\1/p')
    echo "$command"
    eval "\"\$phema\" ${command#posthoc-ema } -q again.safetensors --force" >/dev/null
    cmp "$file" again.safetensors && echo same
done
mv out/phema-0002000-window500.safetensors run
"$phema" weights --sigma-rel 0.1 run 2>&1 >/dev/null | grep 'left out'
"$phema" synth -q --profile sma:2 --profile wma:2 run z.safetensors 2>&1
echo $?
