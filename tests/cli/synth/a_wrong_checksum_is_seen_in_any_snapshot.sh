# The checksum of a compressed snapshot follows its last tensor. The program publishes nothing before it has
# checked the checksum of every snapshot.
"$phema" gen -q --count 3 --steps 6 --input-sigma 0.1 --params 1k --no-sync run >/dev/null
for f in run/*.safetensors; do zstd -q --rm "$f" -o "$f.zst"; done
for f in run/*.zst; do echo "${f#run/} 0.25"; done >weights.txt
for f in run/*.zst; do
    cp "$f" whole
    head -c -1 whole >"$f"
    tail -c 1 whole | tr '\0-\377' '\1-\377\0' >>"$f"
    "$phema" synth -q --no-sync -j1 --weights weights.txt run out.safetensors 2>message
    echo "${f#run/}: $?"
    grep -c "^posthoc-ema: $f: " message
    mv whole "$f"
    ls out* 2>/dev/null
done
"$phema" synth -q --no-sync -j1 --weights weights.txt run out.safetensors
