safetensors() { { printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0%s" "$2"; printf "$3"; } >"$1"; }
one='\0\0\200\77'
safetensors a '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' "$one$one$one"
safetensors b '{"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' "$one$one$one"
"$phema" diff --tolerance 1 a b
echo "$?"
"$phema" diff --json --tolerance 1 a b
