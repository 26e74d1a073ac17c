# A FUSE server with direct_io may answer a read with fewer bytes than asked for, at any place of a file. All verbs and all
# --io have the right bytes nevertheless: reads are continued where they ended, and not by io_uring, which goes wrong there.
slow=$(dirname "$phema")/tests/slow_mount
"$phema" gen -q --count 2 --steps 2 --params 2500k --tensors 5 --dtype f16 --no-sync run >/dev/null
mkdir view run/zst
for f in run/*.safetensors; do zstd -q -o "run/zst/${f##*/}.zst" "$f"; done
cp -r "$fixtures/dcp/two_ranks" run/dcp
first=snapshot-0000001-0.050.safetensors
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
# $1: a directory for the outputs
commands() {
    mkdir "$1"
    for io in auto read direct mmap; do
        "$phema" synth -q --no-sync --io $io --sigma-rel 0.1 view "$1/$io.safetensors"
    done
    "$phema" synth -q --no-sync --io direct --verify --sigma-rel 0.1 view "$1/twice.safetensors"
    "$phema" synth -q --no-sync --convert --dtype f32 view/$first "$1/one.safetensors"
    "$phema" synth -q --no-sync --convert view/dcp "$1/dcp.safetensors"
    "$phema" synth -q --no-sync --sigma-rel 0.1 view/zst "$1/zst.safetensors"
    "$phema" verify -q "$1/auto.safetensors"
    "$phema" verify -q --io direct "$1/auto.safetensors"
    "$phema" diff -q view/$first run/$first && echo equal
}
export -f commands
export phema slow first
"$slow" run view bash -c 'commands right' >right.log 2>&1
cat right.log
for answers in 4 192 1024 4096 half; do
    "$slow" --short $answers run view bash -c 'commands short' 2>&1 | sed 's/short/right/' | diff - right.log
    diff -r short right && echo "$answers: the same"
    rm -r short
done
echo "- a byte that is wrong once: --verify reads the snapshots again, verify as well"
named() { sed "s/snapshot-[0-9.-]*[0-9]/SNAPSHOT/"; } # the byte is wrong in the first one that is read
for io in direct read mmap; do
    "$slow" --flip 1000001 run view "$phema" synth -q --no-sync --io $io --verify --sigma-rel 0.1 view bad.safetensors 2>&1 | named
    "$slow" --flip 1000001 run view bash -c "'$phema' synth -q -f --no-sync --io $io --sigma-rel 0.1 view bad.safetensors
        '$phema' verify -q bad.safetensors 2>&1" | named | grep -v elements
    "$phema" verify -q --snapshots run bad.safetensors >/dev/null 2>&1 || echo "it was wrong"
    rm bad.safetensors
done
