# ema-pytorch writes "ema_model." before the names; elsewhere they are without it.
file() { # name of its tensor, value
    header=$(printf '{"%s":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' "$1")
    printf '\x60\x00\x00\x00\x00\x00\x00\x00%-96s' "$header"
    head -c 16 /dev/zero | tr '\0' "$2"
}
file ema_model.w a >a.safetensors
file w a >b.safetensors
file w b >c.safetensors
"$phema" diff a.safetensors b.safetensors
echo "status $?"
"$phema" diff b.safetensors a.safetensors 2>&1
echo "status $?"
"$phema" diff -q a.safetensors c.safetensors
echo "status $?"
