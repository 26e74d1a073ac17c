# A half-life of which much is left at mid run: no snapshot shows the parameters before training.
exec 2>&1
"$phema" gen -q --no-sync --count 16 --params 5000 run >/dev/null
"$phema" weights --profile ema:half-life=600 --profile ema:half-life=200 --at 2560 run | grep -v '^ *[0-9]'
"$phema" weights -q --json --profile ema:half-life=600 --at 2560 run | grep -oE '"initial": [0-9.]{6}'
"$phema" weights -q --json --profile ema:half-life=200 --at 2560 run | grep -c '"initial"'
echo "the weight of the average: $(awk 'BEGIN { print 2 ^ (-2560 / 600) }')"
