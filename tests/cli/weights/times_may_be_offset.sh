# Names that are all too late, and the option that says so: the weights of the right names.
gen() { # DIR
    "$phema" gen -q --no-sync --count 16 --params 5000 --seed 1 "$1" >/dev/null
    LC_ALL=C sed -i 's/posthoc_ema\./posthoc_xxx./g' "$1"/*.safetensors # the names alone are the labels
}
file() { # INDEX WIDTH
    printf 'snapshot-%07d-%s.safetensors' $((256 * $1)) "$2"
}
exec 2>&1
gen true
cp -r true late
cd late || exit
for i in {16..1}; do
    for w in 0.050 0.100; do mv "$(file "$i" $w)" "$(file $((i + 1)) $w)"; done
done
cd ..
numbers() {
    grep -oE '"(verdict|reason|max_z|total|time|named_time)": [^],}]*|"weights": [^]]*'
}
"$phema" weights --sigma-rel 0.07 late
"$phema" weights --sigma-rel 0.07 --time-offset -256 late
"$phema" weights -q --json --sigma-rel 0.07 --at 4352 --time-offset -256 late | numbers | grep -v named_time >offset
"$phema" weights -q --json --sigma-rel 0.07 true | numbers | cmp - offset && echo "the same as of the right names"
"$phema" synth -q --no-sync --sigma-rel 0.07 --time-offset -256 late out.safetensors && "$phema" verify -q out.safetensors && echo verified
for offset in -512 x inf; do
    "$phema" weights -q --sigma-rel 0.07 --time-offset "$offset" late
    echo "$?"
done
