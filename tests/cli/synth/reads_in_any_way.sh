# The bytes do not depend on how snapshots are read: mapped, read or past the page cache, by one thread or three.
# The snapshots are plain files, also with data at odd offsets, shards, and PyTorch files.
# shellcheck disable=SC2086 # options are several words
"$phema" gen -q --count 6 --steps 60 --params 700k --tensors 9 --dtype f16 even >/dev/null
mkdir odd shards torch
le64() { for i in 0 8 16 24 32 40 48 56; do printf "\\x$(printf %02x $(($1 >> i & 255)))"; done; }
for file in even/*.safetensors; do # one more space behind the header
    name=$(basename "$file" .safetensors)
    n=$(od -An -tu8 -N8 "$file" | tr -d ' ')
    { le64 $((n + 1)); tail -c +9 "$file" | head -c "$n"; printf ' '; tail -c +$((9 + n)) "$file"; } \
        >"odd/$name.safetensors"
    "$phema" synth -q --convert --shard-size 300k "$file" "shards/$name" >/dev/null
done
cp "$fixtures"/ema_pytorch/snapshots/*.pt torch
direct=direct # where the directory's filesystem can
"$phema" synth -q --io direct --sigma-rel 0.1 even probe.safetensors >/dev/null 2>probe || direct="read"
for run in even odd "shards --name-regex (?<time>[0-9]+)-(?<sigma>[0-9.]+)" torch; do
    name=${run%% *} dir=${run%% *} how=${run#"$name"}
    extra=
    [ $name = torch ] && extra="--update-every 1 --input-sigma 0.05,0.28"
    ext=safetensors
    [ $name = torch ] && ext=pt
    "$phema" synth -q -j2 --io mmap --sigma-rel 0.1,0.2 $extra $how $dir "$name-{sigma}.$ext" >/dev/null
    same=0
    for io in auto mmap read $direct; do
        for j in 1 3; do
            "$phema" synth -q -f -j$j --io $io --sigma-rel 0.1,0.2 $extra $how $dir "again-{sigma}.$ext" >/dev/null
            for sigma in 0.100 0.200; do
                cmp $name-$sigma.$ext again-$sigma.$ext && same=$((same + 1))
            done
        done
    done
    echo "$name: $same of 16 the same"
done
