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
# Reads end when eight are in flight, or when the program waits for fewer. Pages that the kernel reclaims too soon are
# read again at once, and do not count.
timeout 600 "$slow" --until 8 --read-ahead 8192 --report reads run view \
    "$phema" weights -q --sigma-rel 0.1 view >cold
"$phema" weights -q --sigma-rel 0.1 run | diff cold - && echo "the weights are those of warm files"
least "bytes of a file" $(($(value first_bytes) / 32)) 1000000
least "reads that waited for others in vain" "$(value in_vain)" 24
# The plan also measures the device.
"$slow" --read-ahead 8192 --report reads run view "$phema" plan -q --sigma-rel 0.1 view >/dev/null
least "bytes of a file that a plan reads" $(($(value first_bytes) / 32)) 1000000
