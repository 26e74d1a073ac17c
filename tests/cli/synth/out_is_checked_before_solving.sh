# What is wrong with OUT is reported before anything is solved: the error is the only line.
"$phema" gen -q --count 2 run >/dev/null
touch there.safetensors
try() {
    "$phema" synth --sigma-rel "$@" 2>&1
    echo "status $?"
}
try 0.1 run there.safetensors
try 0.1 run missing/out.safetensors
try 0.1 run /dev/null
try 0.1,0.2 run out.safetensors
try 0.1 --at 2048,4096 run out.safetensors
# An existing snapshot is not offered for replacement.
try 0.1 run run/snapshot-0004096-0.050.safetensors | tail -n 2
# --force, --skip-existing and --resume look at it themselves.
"$phema" synth -q --force --sigma-rel 0.1 run there.safetensors
"$phema" synth -q --skip-existing --sigma-rel 0.1 run there.safetensors
