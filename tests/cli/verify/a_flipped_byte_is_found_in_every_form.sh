# Outputs of synth match their provenance: in every form, on one thread and on several, with every way of
# reading. verify finds one changed byte and names its tensor.
# shellcheck disable=SC2086 # options are several words
flip() { # file, offset from the end
    local at=$(($(stat -c %s "$1") - $2)) byte
    byte=$(od -An -tu1 -j $at -N1 "$1")
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none
}
"$phema" gen -q run >/dev/null
"$phema" synth -q --sigma-rel 0.1 run out.safetensors >/dev/null
for options in '-j1' '-j4 --io mmap' '--io direct' '--max-ram 64M'; do
    "$phema" verify -q $options out.safetensors
done
flip out.safetensors 100
"$phema" verify -q out.safetensors
echo "status $?"
echo "- shards, dtypes, rules, several targets"
"$phema" synth -q --shard-size 10k --dtype f16 --rule weight=0.05 --rule bias=copy --sigma-rel 0.1,0.2 \
    run shards/ >/dev/null
for out in shards/*; do "$phema" verify -q $out; done
flip shards/phema-0004096-0.200/model-00001-of-00003.safetensors 1
"$phema" verify -q shards/phema-0004096-0.200
echo "status $?"
echo "- compressed: the decompressor sees it first"
"$phema" synth -q --sigma-rel 0.1 run out.safetensors.zst >/dev/null
"$phema" verify -q -j4 out.safetensors.zst
flip out.safetensors.zst 1000
"$phema" verify -q out.safetensors.zst 2>&1 | cut -d ';' -f 1 | sed -E 's|at offset [0-9]+|at offset N|' # digits of weights move it
echo "status ${PIPESTATUS[0]}"
"$phema" synth -q -f --sigma-rel 0.1 run out.safetensors.zst >/dev/null
"$phema" synth -q --convert out.safetensors.zst plain.safetensors >/dev/null
echo "- parts that were joined"
for part in 1 2; do "$phema" synth -q --part $part/2 --sigma-rel 0.1 run joined.safetensors; done
"$phema" join -q joined.safetensors >/dev/null
"$phema" verify -q joined.safetensors
echo "- a copy: its tensors, and all else"
"$phema" synth -q --input-sigma 0.05,0.28 --update-every 5 --sigma-rel 0.1 \
    "$fixtures/ema_pytorch/snapshots" copy.pt >/dev/null
"$phema" verify -q copy.pt
place() { # of a tensor's first byte, from the end
    local at
    at=$("$phema" inspect --json copy.pt | grep "\"$1\"" | grep -o '"offset": *[0-9]*' | grep -o '[0-9]*$')
    echo $(($(stat -c %s copy.pt) - at))
}
for name in ema_model.fc1.weight initted; do
    cp copy.pt other.pt
    cp copy.pt.json other.pt.json
    flip other.pt "$(place $name)"
    "$phema" verify -q other.pt
    echo "status $?"
done
"$phema" synth -q --sigma-rel 0.1 "$fixtures/edm2/snapshots" copy.pkl >/dev/null
"$phema" verify -q copy.pkl
echo "- another checkpoint as the template, weights from outside"
"$phema" synth -q --sigma-rel 0.1 --into plain.safetensors run into.safetensors >/dev/null
"$phema" verify -q into.safetensors
"$phema" weights -q --json --sigma-rel 0.1,0.15 run >weights.json
"$phema" synth -q --weights weights.json run given/ >/dev/null
for out in given/*; do "$phema" verify -q $out; done
