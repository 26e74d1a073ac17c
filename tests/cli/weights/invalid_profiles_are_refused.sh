# One sentence has the option, the value found and the known profiles. Nothing is made.
"$phema" gen -q --count 2 run >/dev/null
try() {
    "$phema" weights "$@" run
    echo $?
}
exec 2>&1
try --profile emu:5
try --profile ema
try --profile ema:half-life=nan
try --profile ema:2000,ramp=3
try --profile power:0.4
try --profile power:gamma=-0.2
try --profile window:4097
try --profile window:1500 --at 1000
try --profile 'raw - window:5k'
try --profile table:nowhere
try --profile diffusers --at 1e9
try --profile sma:3
try --profile raw --weights weights.json
try --profile raw --at 5000
printf 'snapshot-0002048-0.050.safetensors 1\n' >plain
try -q --weights plain --profile ema:200 --json | grep -o '"spec": "ema[^,]*,\|^[0-9]$'
try --weights plain --profile ema:200 --profile raw
try --input-profile raw --input-sigma 0.1 --sigma-rel 0.1
try --input-profile 'raw - raw' --sigma-rel 0.1
try --input-profile power:0.4 --sigma-rel 0.1
