# A small tensor that is zeroed or garbage in one snapshot hardly moves the distances of the whole model.
"$phema" gen -q --no-sync --count 8 --params 20000 good >/dev/null
damage() { # FILE TENSOR: overwrites its data with standard input
    local header size range
    size=$(od -An -t u8 -N 8 "$1")
    header=$(head -c $((8 + size)) "$1" | tail -c +9)
    range=${header#*\""$2"\":}
    range=${range#*\"data_offsets\":[}
    range=${range%%]*}
    head -c $((${range#*,} - ${range%,*})) |
        dd of="$1" bs=1M seek=$((8 + size + ${range%,*})) oflag=seek_bytes conv=notrunc status=none
}
bad() { # NAME COMMAND...: of a copy of the series
    rm -rf bad
    cp -r good bad
    echo "$1:"
    (cd bad && "${@:2}")
    "$phema" weights --json --sigma-rel 0.15 bad 2>messages | grep -oE '"verdict": "[a-z]*"|"total": [a-z0-9]*'
    grep '^warning: the snapshots' messages
}
zero() { # FILE TENSOR...
    for tensor in "${@:2}"; do damage "$1" "$tensor" </dev/zero; done
}
bad "a bias zeroed" zero snapshot-0001024-0.050.safetensors blocks.1.bias
"$phema" weights -q --checks error --sigma-rel 0.15 bad
echo "status $?"
"$phema" inspect -q bad | grep 'fit their labels'
bad "a bias of the newest zeroed" zero snapshot-0004096-0.100.safetensors blocks.2.bias
bad "all biases zeroed" zero snapshot-0002048-0.050.safetensors blocks.{0,1,2}.bias
text() {
    damage snapshot-0001024-0.100.safetensors blocks.0.bias < <(yes $'\x40\x40\x40')
}
bad "a bias overwritten with threes" text
