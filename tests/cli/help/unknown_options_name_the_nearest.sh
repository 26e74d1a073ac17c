exec 2>&1
"$phema" synth --sigmarel 0.1 a b
echo "$?"
"$phema" synth --sigma_rel=0.1 a b
echo "$?"
"$phema" weights --metrik walk a
echo "$?"
"$phema" inspect --jsno a
echo "$?"
"$phema" diff --tolerence 1 a b
echo "$?"
"$phema" gen --stepz 10 a
echo "$?"
"$phema" convert --halflife 10
echo "$?"
"$phema" convert --something-else
echo "$?"
"$phema" convert -x
echo "$?"
