# The fingerprint of a compressed snapshot with a seek table covers bytes at the starts of frames. It covers
# more bytes where there are fewer frames than windows. A snapshot is named if those bytes changed, even if
# the rest of the file is equal.
flip() { # offset from the end
    local at=$(($(stat -c %s "$newest") - $1)) byte
    byte=$(od -An -tu1 -j $at -N1 "$newest")
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$newest" bs=1 seek=$at conv=notrunc status=none
}
verify() {
    "$phema" verify -q out.safetensors
    echo "status $?"
}
header='{"w":{"dtype":"U8","shape":[1200000],"data_offsets":[0,1200000]}}'
mkdir run
for n in 1 2; do # what does not compress lies in raw blocks, of up to 128 KiB
    {
        printf '%b' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0"
        printf '%s' "$header"
        LC_ALL=C awk -v x=$n 'BEGIN {
            for (i = 0; i < 1200000; i++) { x = x * 16807 % 2147483647; printf "%c", int(x / 8388608) }
        }'
    } >plain
    split -b 500000 plain piece.
    for piece in piece.*; do
        zstd -q --no-check "$piece" -o "$piece.zst"
        cat "$piece.zst"
    done >run/snapshot-000000$n-0.050.safetensors.zst
    rm piece.*
done
newest=run/snapshot-0000002-0.050.safetensors.zst
printf '%s 0.5\n' snapshot-000000{1,2}-0.050.safetensors.zst >weights.txt
"$phema" synth -q --input-hash sampled --weights weights.txt run out.safetensors
verify
echo "- the first bytes"
flip 1199500
verify
flip 1199500
echo "- where the last frame begins"
flip 199000
verify
flip 199000
echo "- the last byte"
flip 1
verify
flip 1
echo "- what is not looked at"
flip 100000
verify
