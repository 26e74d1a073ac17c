exec 2>&1
"$phema" convert --sigma-rel
echo "$?"
"$phema" synth -j
echo "$?"
"$phema" inspect --json=yes a
echo "$?"
"$phema" synth --dtype f8 a b
echo "$?"
"$phema" synth --dtype= a b
echo "$?"
"$phema" synth --threads two a b
echo "$?"
"$phema" synth -j 2.5 a b
echo "$?"
"$phema" synth -j 5k --sigma-rel 0.1 a b
echo "$?"
"$phema" weights --from "then" a
echo "$?"
"$phema" weights --sigma-rel 0x1p-4 a
echo "$?"
"$phema" weights --ridge -1 --sigma-rel 0.1 a
echo "$?"
"$phema" weights --ridge much --sigma-rel 0.1 a
echo "$?"
