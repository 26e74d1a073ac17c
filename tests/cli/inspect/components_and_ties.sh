# safetensors FILE NAMES...: each tensor is F32 [1]
safetensors() {
    local file=$1 header='{' at=0 name
    shift
    for name in "$@"; do
        header+="\"$name\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[$at,$((at += 4))]},"
    done
    header=${header%,}\}
    printf "\\x$(printf %02x $((${#header} % 256)))\\x$(printf %02x $((${#header} / 256)))\0\0\0\0\0\0" >"$file"
    printf %s "$header" >>"$file"
    head -c "$at" /dev/zero >>"$file"
}
summary() {
    "$phema" inspect "$1" | sed -n '/component/,/^$/p'
}
# The common prefix of all names distinguishes nothing; the two parts after it do.
safetensors a model.net.in.weight model.net.in.bias model.net.out.0.weight model.net.out.1.weight \
    model.net.gain
summary a
# Components have one part where two would give too many components.
names=()
for i in {1..11}; do
    names+=("down.$i.w" "up.$i.w")
done
safetensors b "${names[@]}"
summary b
# Of very many components the table shows twenty.
safetensors c block{1..23}.w
summary c
"$phema" inspect --json c | grep -c '"prefix": "block'
# Names of one part form no components.
safetensors d w x y
summary d
# Ties.
"$phema" inspect "$fixtures/torch/lightning.ckpt" | grep tied
"$phema" inspect --json "$fixtures/torch/lightning.ckpt" | sed -n '/"ties"/,/ \]/p'
# Tensors of a series are tied when every file ties them.
mkdir run
cp "$fixtures/torch/lightning.ckpt" run/x-1-0.10
cp "$fixtures/torch/lightning.ckpt" run/x-2-0.10
"$phema" inspect -qv run | grep tied
# Parameters and buffers are counted apart where the file distinguishes them.
summary "$fixtures/edm2/snapshots/network-snapshot-0000004-0.050.pkl"
"$phema" inspect --json "$fixtures/edm2/snapshots/network-snapshot-0000004-0.050.pkl" | grep fourier'",'
