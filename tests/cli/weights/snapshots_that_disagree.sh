exec 2>&1
# safetensors FILE HEADER DATA: the header has less than 256 bytes; DATA is a format string of printf.
safetensors() { { printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0%s" "$2"; printf "$3"; } >"$1"; }
tensor() { printf '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%s]}' "$@"; }
mkdir run
a=run/s-1000-0.10.safetensors b=run/s-2000-0.10.safetensors
one='\0\0\200\77'
safetensors $a "{$(tensor w F32 '[2]' 0,8),$(tensor b F32 '[1]' 8,12)}" "$one$one$one"
try() {
    safetensors $b "$1" "$one$one$one"
    "$phema" weights -q --sigma-rel 0.1 run >/dev/null
    echo "$?"
}
try "{$(tensor b F32 '[1]' 0,4),$(tensor w F32 '[2]' 4,12)}" # another order is fine
try "{$(tensor w F32 '[2]' 0,8),$(tensor c F32 '[1]' 8,12)}"
try "{$(tensor w F32 '[2]' 0,8),$(tensor b F32 '[1]' 8,12),$(tensor c F32 '[0]' 12,12)}"
try "{$(tensor w F32 '[3]' 0,12)}"
try "{$(tensor w F32 '[2,1]' 0,8),$(tensor b F32 '[1]' 8,12)}"
try "{$(tensor w F16 '[4]' 0,8),$(tensor b F32 '[1]' 8,12)}"
try "{$(tensor w I32 '[2]' 0,8),$(tensor b F32 '[1]' 8,12)}"
# Tensors that only one snapshot has can be left out.
safetensors $b "{$(tensor w F32 '[2]' 0,8),$(tensor c F32 '[1]' 8,12)}" "$one$one$one"
"$phema" weights -q --sigma-rel 0.1 --exclude '^[bc]$' run >/dev/null
echo "$?"
safetensors $b "{$(tensor w F32 '[2]' 0,8)}" "$one$one"
"$phema" weights -q --sigma-rel 0.1 run
echo "$?"
