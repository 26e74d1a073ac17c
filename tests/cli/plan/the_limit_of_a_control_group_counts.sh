# A run respects the limit of its control group like --max-ram; the smaller of the two counts.
shim=$(dirname "$phema")/tests/libreading_shim.so
"$phema" gen -q --count 4 --steps 20 --params 50k --dtype f32 --no-sync run >/dev/null
mkdir -p root/proc/self root/sys/fs/cgroup
echo "0::/" >root/proc/self/cgroup
allowed() { # bytes, options
    echo "$1" >root/sys/fs/cgroup/memory.max
    shift
    echo "- $(cat root/sys/fs/cgroup/memory.max) and ${*:-no option}"
    LD_PRELOAD="$shim" SHIM_CGROUPS=$PWD/root "$phema" plan -j4 --sigma-rel 0.1 "$@" run 2>&1 |
        sed -En 's/at least [0-9.]+ ([KM])iB are needed.*/at least so many \1iB are needed/; /^(memory|posthoc)/p' |
        sed -E 's/^(memory +)[0-9.]+ MiB +at most/\1... at most/'
}
allowed max
allowed 1000
allowed 1000 --max-ram 1G
allowed 10000000000 --max-ram 1G
