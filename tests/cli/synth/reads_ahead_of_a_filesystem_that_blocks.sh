# A filesystem that answers a read past the page cache before the call returns: many are in flight nevertheless, since
# threads wait for them.
slow=$(dirname "$phema")/tests/slow_mount
"$phema" gen -q --count 4 --steps 4 --params 2M --tensors 8 --no-sync run >/dev/null
mkdir view
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
"$slow" run view "$phema" synth -q --no-sync --io read --sigma-rel 0.1 view one.safetensors >/dev/null
least() { # what, number, bound
    if [ "$2" -le "$3" ]; then echo "$1: at most $3"; else echo "$1: $2, expected at most $3"; fi
}
# Reads end when eight are in flight, or when the program waits for fewer.
timeout 600 "$slow" --until 8 --blocks --report reads run view \
    "$phema" synth -q -f -j1 --no-sync --io direct --io-depth 16 --sigma-rel 0.1 view out.safetensors >/dev/null
cmp one.safetensors out.safetensors
least "reads that waited for others in vain" "$(sed -E 's/.*"in_vain": ([0-9]+).*/\1/' reads)" 70 # one by one: more than 100
