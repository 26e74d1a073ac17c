# With this many snapshots several threads read them, and build and solve the systems. The weights
# and all other printed values are the same to the last digit.
set -e
"$phema" gen -q --count 135 --steps 1350 --params 3000 --tensors 3 --dtype f16 --no-sync run >/dev/null
alone() { taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')" "$@"; }
compare() { # name, arguments
    local name=$1
    shift
    "$phema" weights -q --json --sigma-rel 0.07,0.2 "$@" run >all.json
    alone "$phema" weights -q --json --sigma-rel 0.07,0.2 "$@" run >one.json
    cmp all.json one.json && echo "$name: the same"
}
[ "$(find run -name '*.safetensors' | wc -l)" -ge 256 ] && echo "many snapshots"
compare motion
compare walk --metric walk
compare profile --metric profile
