# Headers and samples of cold files: many reads are in flight at once, and less than 1 MB of each file
# is read, although the kernel would read 8 MiB around each place.
slow=$(dirname "$phema")/tests/slow_mount
"$phema" gen -q --count 16 --steps 16 --params 1M --tensors 40 --no-sync run >/dev/null
mkdir view
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
least() { # what, number, bound
    if [ "$2" -le "$3" ]; then echo "$1: at most $3"; else echo "$1: $2, expected at most $3"; fi
}
value() {
    sed -E "s/.*\"$1\": ([0-9]+).*/\1/" reads
}
# A read ends when eight are in flight, or after a second. Some kernels reclaim pages soon, and those that were
# requested are then read again, one by one: such a run proves nothing, and is made again.
for _ in 1 2 3; do
    rm -f reads
    timeout 60 "$slow" --delay 1000 --until 8 --read-ahead 8192 --report reads run view \
        "$phema" weights -q --sigma-rel 0.1 view >cold || continue
    [ "$(value delayed)" -gt 24 ] || break
done
"$phema" weights -q --sigma-rel 0.1 run | diff cold - && echo "the weights are those of warm files"
least "bytes of a file" $(($(value bytes) / 32)) 1000000
least "reads that waited for others in vain" "$(value delayed)" 24
# The plan also measures the device.
"$slow" --read-ahead 8192 --report reads run view "$phema" plan -q --sigma-rel 0.1 view >/dev/null
least "bytes of a file that a plan reads" $(($(value bytes) / 32)) 1000000
