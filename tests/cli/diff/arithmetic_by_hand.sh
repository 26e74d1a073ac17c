# safetensors FILE HEADER DATA: the header has less than 256 bytes; DATA is a format string of printf.
safetensors() { { printf "\\x$(printf %02x ${#2})\0\0\0\0\0\0\0%s" "$2"; printf "$3"; } >"$1"; }
zero='\0\0\0\0' minus_zero='\0\0\0\200' one='\0\0\200\77' two='\0\0\0\100' three='\0\0\100\100'
four='\0\0\200\100' nan='\0\0\300\177' other_nan='\1\0\300\377'
header='{"same":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
header+='"zeros":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},'
header+='"moved":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}'
safetensors a "$header" "$three$four$zero$minus_zero$one$two"
safetensors b "$header" "$three$four$minus_zero$zero$one$one"
# moved: |(1,2) - (1,1)| / |(1,1)| = 1/sqrt(2) = 0.7071; all: 1 / sqrt(25 + 2) = 0.19245
"$phema" diff a b
"$phema" diff -v a b
"$phema" diff --json a b
# the other way round: 1/sqrt(5) = 0.4472, 1/sqrt(30) = 0.18257
"$phema" diff b a
"$phema" diff --tolerance 0.4473 b a >/dev/null
echo "$?"
"$phema" diff --tolerance 0.4472 b a >/dev/null
echo "$?"
header='{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
safetensors nan "$header" "$nan$one"
safetensors other "$header" "$other_nan$one"
safetensors finite "$header" "$one$one"
safetensors none "$header" "$zero$zero"
"$phema" diff nan other
"$phema" diff nan finite
echo "$?"
"$phema" diff --tolerance 10 nan finite >/dev/null
echo "$?"
"$phema" diff finite none
echo "$?"
