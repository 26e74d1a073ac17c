# A stranger's provenance may name any file that the user can read. verify prints none of the file's lines,
# words or names, whatever kind of file the command takes it for. An error message has only its path.
secret=hunter2
"$phema" gen -q --count 2 run >/dev/null
cp run/snapshot-0004096-0.050.safetensors template.safetensors
"$phema" synth -q --sigma-rel 0.1 --into template.safetensors run out.safetensors >/dev/null
mv out.safetensors.json good.json
printf '%s:x:1000\n%s 0.5\n' $secret $secret >lines
printf '{"%s": 1, "snapshots": []}' $secret >object.json
printf '{"snapshots": [{"time": 1, "profile": "%s"}]}' $secret >spec.json
printf '{"snapshots": [{"time": 1, "file": "%s"}]}' $secret >file.json
printf '{"snapshots": [{"file": "a"}, %s' $secret >broken.json
printf '{"snapshots": [{"file": "%s"}], "targets": [{"spec": "%s", "weights": [1]}]}' $secret $secret >weights.json
printf '{"snapshots": [{"file": "%s"}], "targets": [{"spec": "%s", "weights": [1]}]}' \
    snapshot-0004096-0.050.safetensors $secret >target.json
printf '1 0.5\n2 %s\n' $secret >table
mkdir taken others
cp lines taken/snapshot-0000001-0.050.safetensors
header='{"'$secret'":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
for t in 1 2; do
    printf '%b%s0123' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" "${header/\[1\]/[$t]}" \
        >others/snapshot-000000$t-0.050.safetensors
done
cp others/snapshot-0000001-0.050.safetensors one.safetensors
mkfifo pipe
try() { # command, options of verify
    sed -E 's|"command":"[^"]*"|"command":"posthoc-ema synth '"$1"'"|' good.json >out.safetensors.json
    timeout 120 "$phema" verify -v "${@:2}" out.safetensors >said 2>&1
    echo "$1: status $?, $(grep -c $secret said) lines with the secret"
    tail -n 1 said
}
try '--sigma-rel 0.1 --at 4096 @lines'
try '--sigma-rel 0.1 --at 4096 @pipe'
for manifest in object spec file broken weights; do try "--sigma-rel 0.1 --at 4096 $manifest.json"; done
try '--sigma-rel 0.1 --at 4096 taken'
try '--sigma-rel 0.1 --at 2 others'
for file in lines object.json broken.json weights.json target.json one.safetensors; do
    try "--weights $file run"
done
for file in lines table; do
    try "--profile table:$file --at 4096 run"
    try "--sigma-rel 0.1 --at 4096 --input-profile table:$file run"
done
for file in lines table one.safetensors; do try "--sigma-rel 0.1 --at 4096 --into $file run"; done
echo "- a version that did not say what its inputs were like"
sed -i -E 's/,"bytes":[0-9]*,"xxh3":"[^"]*"//g; s/,"data_xxh3":"[^"]*"//g' good.json
header=${header/\[1\]/[1]}
for k in 1 2; do printf '%b%s0123' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" "$header" >others/$k; done
sed -i 's/"file":"[^"]*05[^"]*"/"file":"1"/; s/"snapshots":\[.*\],"profile_error"/"snapshots":[{"file":"1","time":1,"sigma_rel":null,"gamma":null,"weight":1}],"profile_error"/; s/"target":{[^}]*}/"target":{"time":1}/' good.json
printf '{"snapshots": [{"file": "others/1", "time": 1}]}' >run.json
sed -i 's|"file":"1"|"file":"others/1"|' good.json
printf 'others/1 1\n' >w
try "--weights w run.json"
echo "- named by the user, a file is shown"
try '--sigma-rel 0.1 --at 4096 run' --snapshots object.json
