"$phema" gen --count 1 --steps 64 --input-sigma 0.1 --tensors 2 --params 100 a >/dev/null
"$phema" gen --count 1 --steps 64 --input-sigma 0.1 --tensors 2 --params 100 --dtype f16 b >/dev/null
# Rounding to float16 has a relative error of 1.92e-4 rms and at most 2^-11 = 4.9e-4 per element.
name=snapshot-0000064-0.100.safetensors
for tolerance in 0 1e-5 5e-4 1; do
    "$phema" diff -q --tolerance $tolerance a/$name b/$name
    echo "$tolerance: $?"
    "$phema" diff --json --tolerance $tolerance a/$name b/$name | grep '"equal"'
done
# A distance equal to the tolerance, to the last digit, is within it.
most=$("$phema" diff --json a/$name b/$name | sed -n 's/.*"name".*"rel_l2": \([^}]*\)}.*/\1/p' | sort -g | tail -n 1)
"$phema" diff -q --tolerance "$most" a/$name b/$name && echo "its own distance: 0"
"$phema" diff --tolerance -1 a/$name b/$name
