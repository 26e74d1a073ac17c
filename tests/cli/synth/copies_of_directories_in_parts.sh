# Copies of distributed checkpoints that several processes write: all files are those of one process.
exec 2>&1
"$phema" gen -q --count 4 --params 200k --tensors 9 --dtype f16 --no-sync run >/dev/null
mkdir pieces
for file in run/*; do "$phema" synth -q --no-sync --convert --ranks 3 "$file" "pieces/$(basename "$file" .safetensors)" >/dev/null; done
cp -r pieces/snapshot-0004096-0.050 into
echo '{"step": 7}' >into/config.json
part() { "$phema" synth -q --no-sync -j$((1 + $1 % 3)) --part "$@" || echo "part $1: status $?"; }
check() { # NAME ARGUMENTS...
    local n i
    "$phema" synth -q --no-sync "${@:2}" one >/dev/null
    for n in 1 2 3 5; do
        for ((i = 0; i < n; i++)); do part $((1 + (n / 2 + n - i) % n))/$n "${@:2}" parts; done
        [ -e parts ] && echo "parts is there before it is joined"
        "$phema" join -q --no-sync parts >/dev/null
        diff -r one parts && echo "$1: $n parts: same"
        rm -rf parts
        ls -d parts* 2>/dev/null
    done
}
check "replaced tensors" --verify --sigma-rel 0.1 --into into pieces
"$phema" verify -q one
echo "- killed"
[[ ${sanitize-} = *thread* ]] && echo "skipped: the thread sanitizer does not take the shim" >&2 && exit 77
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_WITH=KILL"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
for at in 1 5 20; do
    for i in 2 1; do
        { FAULT_CALLS=pwrite,pwrite64 FAULT_PATH=.partial FAULT_AT=$at $faults "$phema" synth -q --no-sync -j1 --part $i/2 --sigma-rel 0.1 --into into pieces parts >/dev/null; } 2>/dev/null
    done
    for i in 1 2; do part $i/2 --sigma-rel 0.1 --into into pieces parts; done
    { FAULT_CALLS=pwrite,pwrite64,rename,renameat2 FAULT_AT=$at $faults "$phema" join -q --no-sync parts >/dev/null; } 2>/dev/null
    "$phema" join -q --no-sync parts >/dev/null 2>&1
    diff -r one parts && echo "killed at $at: same, $(echo parts*)"
    rm -rf parts*
done
rm -r one
echo "- a conversion, which has no provenance"
check "a conversion" --convert --into into pieces/snapshot-0001024-0.100
echo "- folders have to be made by one process"
trainers=$fixtures/trainers
"$phema" synth -q --part 1/2 --sigma-rel 0.1 "$trainers/flux_action" --into "$trainers/flux_action/step-200" --key ema_0p10 out
echo "status $?: $(echo out*)"
