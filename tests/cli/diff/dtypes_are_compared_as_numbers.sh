safetensors() { { printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0%s" "$2"; printf "$3"; } >"$1"; }
# 1.5 and -2 in F64, F32, F16 and BF16
safetensors f64 '{"w":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}' '\0\0\0\0\0\0\370\77\0\0\0\0\0\0\0\300'
safetensors f32 '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\0\0\300\77\0\0\0\300'
safetensors f16 '{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}' '\0\76\0\300'
safetensors bf16 '{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}' '\300\77\0\300'
for a in f64 f32 f16 bf16; do
    for b in f64 f32 f16 bf16; do
        "$phema" diff $a $b
    done
done | sort | uniq -c | sed 's/^ *//'
# Integers are compared as bytes, so another dtype or shape makes a comparison impossible.
safetensors i64 '{"w":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}' '\1\0\0\0\0\0\0\0'
safetensors i32 '{"w":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}}' '\1\0\0\0\0\0\0\0'
safetensors row '{"w":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}' '\1\0\0\0\0\0\0\0'
"$phema" diff i32 i32
"$phema" diff i32 i64
"$phema" diff i32 row
echo "$?"
