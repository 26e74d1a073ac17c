# The output of a piped zstd --long=27 needs a window of 128 MiB for decompression, whatever it holds. Sanitizers
# use memory of their own, so their limits are higher.
own=${sanitize:+8}
"$phema" gen -q --count 1 run >/dev/null
mkdir compressed
for file in run/*.safetensors; do
    # shellcheck disable=SC2094 # the names are those of different files
    zstd -q --long=27 <"$file" >"compressed/$(basename "$file").zst"
done
"$phema" synth -q -j2 --sigma-rel 0.07 --max-ram 64M compressed out.safetensors 2>err
echo "status $?"
sed -E 's/[0-9.]+ ?(MiB|KiB)/N \1/g' err
"$phema" synth -q --sigma-rel 0.07 --max-ram "${own}"512M compressed out.safetensors
"$phema" synth -q --sigma-rel 0.07 --max-ram "${own}"008M run plain.safetensors
"$phema" diff out.safetensors plain.safetensors
ls
