# fp8 codes of files that are not in the page cache are read past it, many requests at a time, and become numbers when
# they are summed. The bytes are those of any other way. Reads that are short, fail or end early are completed or named.
tests=$(dirname "$phema")/tests shim=$(dirname "$phema")/tests/libreading_shim.so slow=$(dirname "$phema")/tests/slow_mount
mkdir view
python3 - <<'EOF'
import json, os, random, struct
rows, columns = 512, 1024
for k in range(1, 5):
    rng = random.Random(k)
    codes = bytes(rng.choice((0, 128)) | rng.randrange(127) for _ in range(rows * columns))
    scales = struct.pack("<32f", *(rng.uniform(0.001, 0.01) for _ in range(32)))
    header = json.dumps({"w.weight": {"dtype": "F8_E4M3", "shape": [rows, columns], "data_offsets": [0, len(codes)]},
                         "w.weight_scale_inv": {"dtype": "F32", "shape": [4, 8],
                                                "data_offsets": [len(codes), len(codes) + len(scales)]}}).encode()
    os.makedirs(f"run/checkpoint-{k}")
    with open(f"run/checkpoint-{k}/config.json", "w") as file:
        json.dump({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, file)
    with open(f"run/checkpoint-{k}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + codes + scales)
EOF
for k in 1 2 3 4; do echo "checkpoint-$k 0.25"; done >weights.txt
"$slow" run view true 2>error || { [ $? = 77 ] && { cat error >&2; exit 77; }; }
"$slow" run view "$phema" synth -q --no-sync --io read --weights weights.txt view one.safetensors >/dev/null
least() { # what, number, bound
    if [ "$2" -le "$3" ]; then echo "$1: at most $3"; else echo "$1: $2, expected at most $3"; fi
}
# Reads end when four are in flight, or when the program waits for fewer.
timeout 600 "$slow" --until 4 --report reads run view \
    "$phema" synth -q -j1 --no-sync --io direct --io-depth 16 --weights weights.txt view out.safetensors >/dev/null
cmp one.safetensors out.safetensors && echo "same: past the page cache"
least "reads that waited for others in vain" "$(sed -E 's/.*"in_vain": ([0-9]+).*/\1/' reads)" 20 # one by one: more than 100

"$phema" synth -q -f --no-sync --io mmap --weights weights.txt run one.safetensors >/dev/null
if ! "$phema" synth -q -f --no-sync --io direct --weights weights.txt run out.safetensors >/dev/null 2>probe; then
    echo "skipped: files cannot be read past the page cache here" >&2
    exit 77
fi
mkdir bin
cp "$phema" bin/posthoc-ema
cp "$sim" bin/posthoc-ema-cuda.so
for options in -j1 -j3 '-j2 --io-depth 1' '-j2 --io-depth 300' "-j2 --max-ram $((16 + ${sanitize:+400}0))M" '-j2 --device cuda'; do
    # shellcheck disable=SC2086 # several words
    bin/posthoc-ema synth -q -f --no-sync --io direct $options --weights weights.txt run out.safetensors >/dev/null
    cmp one.safetensors out.safetensors && echo "same: ${options%%--max*}"
done
for io in mmap direct; do # new scales are measured first
    "$phema" synth -q -f --no-sync --io $io --dtype same --weights weights.txt run "$io.safetensors" >/dev/null
done
cmp mmap.safetensors direct.safetensors && echo "same: new scales"

shimmed() {
    env "$@" LD_PRELOAD="$shim" "$tests/without_uring" ENOSYS \
        "$phema" synth -q -f -j1 --no-sync --io direct --weights weights.txt run out.safetensors
}
show() { sed -E "s/checkpoint-[0-9]+/checkpoint-K/; s/offset [0-9]+/offset N/; s/expected [0-9]+/expected N/"; }
shimmed SHIM_SHORT=8192 SHIM_COUNT=count >/dev/null
cmp one.safetensors out.safetensors && [ "$(cat count)" -ge 400 ] && echo "completed"
rm out.safetensors
# the last reads are those of the queue
shimmed SHIM_FAIL_AT=540 2>&1 | show
shimmed SHIM_END_AT=540 2>&1 | show
ls
