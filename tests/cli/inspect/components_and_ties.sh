# file NAMES...: one F32 [1] each
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
# what all names begin with tells nothing apart; two parts behind it do
safetensors a model.net.in.weight model.net.in.bias model.net.out.0.weight model.net.out.1.weight \
    model.net.gain
summary a
# but not where they would be too many
names=()
for i in {1..11}; do
    names+=("down.$i.w" "up.$i.w")
done
safetensors b "${names[@]}"
summary b
# and of very many, twenty are shown
safetensors c block{1..23}.w
summary c
"$phema" inspect --json c | grep -c '"prefix": "block'
# names of one part make no components
safetensors d w x y
summary d
# ties
"$phema" inspect "$fixtures/torch/lightning.ckpt" | grep tied
"$phema" inspect --json "$fixtures/torch/lightning.ckpt" | sed -n '/"ties"/,/ \]/p'
# in a series they are tied when they are in every file
mkdir run
cp "$fixtures/torch/lightning.ckpt" run/x-1-0.10
cp "$fixtures/torch/lightning.ckpt" run/x-2-0.10
"$phema" inspect -q run | grep tied
# parameters and buffers, where the file tells them apart
summary "$fixtures/edm2/snapshots/network-snapshot-0000004-0.050.pkl"
"$phema" inspect --json "$fixtures/edm2/snapshots/network-snapshot-0000004-0.050.pkl" | grep fourier'",'
