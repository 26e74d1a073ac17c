exec 2>&1
"$phema" synth
echo "$?"
"$phema" synth a
echo "$?"
"$phema" synth a b c
echo "$?"
"$phema" inspect
echo "$?"
"$phema" diff a
echo "$?"
"$phema" gen
echo "$?"
"$phema" gen a b
echo "$?"
"$phema" convert 0.1
echo "$?"
