"$phema" gen --count 2 --steps 100 run >/dev/null
mkdir mine
for file in run/snapshot-*; do
    name=${file##*/snapshot-}
    name=${name%.safetensors}
    # The names alone give width and time, without a manifest.
    ln -s "../$file" "mine/ema${name#*-}_step${name%%-*}.safetensors"
done
touch mine/notes.txt mine/other.safetensors
"$phema" weights --sigma-rel 0.07 --name-regex 'ema(?<sigma>[0-9.]+)_step(?<time>[0-9]+)' mine
"$phema" weights --sigma-rel 0.07 --name-regex 'ema(?<sigma>[0-9.]+)' mine
echo "$?"
"$phema" weights --sigma-rel 0.07 --name-regex 'ema(' mine
echo "$?"
"$phema" weights --sigma-rel 0.07 --name-regex 'none(?<time>x)' mine
