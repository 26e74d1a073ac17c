# Scales that are missing, of another shape, dtype or number, or serve other blocks: one sentence with file and tensor.
# The headers are edited without changing their lengths.
printf 'checkpoint-%s 0.5\n' 100 200 >weights.txt
# edit FIXTURE CHECKPOINT SED...: a copy of the series in which one checkpoint, or all, differ
edit() {
    rm -rf series
    cp -R "$fixtures/trainers/$1" series
    chmod -R u+w series
    rm -rf series/checkpoint-300 series/truth_mean.safetensors
    # shellcheck disable=SC2086
    LC_ALL=C sed -i "${@:3}" series/$2/model.safetensors
}
try() {
    "$phema" synth --quiet --no-sync --force "$@" --weights weights.txt series out.safetensors 2>err >out
    echo "$? $(grep '^posthoc-ema:' err)"
}

# missing: in one snapshot, in the other, in both (then codes are numbers by themselves)
edit fp8_block16 checkpoint-100 's/up_proj.weight_scale_inv/up_proj.weight_other_inv/'
try
edit fp8_block16 checkpoint-200 's/up_proj.weight_scale_inv/up_proj.weight_other_inv/'
try
edit fp8_block16 checkpoint-100 's/up_proj.weight_scale_inv/up_proj.weight_other_inv/g'
LC_ALL=C sed -i 's/up_proj.weight_scale_inv/up_proj.weight_other_inv/' series/checkpoint-200/model.safetensors
try

# another shape: in all, in one
edit fp8_block16 'checkpoint-?00' 's/"shape":\[2,3\]/"shape":[3,2]/'
try
edit fp8_block16 checkpoint-200 's/"shape":\[2,3\]/"shape":[3,2]/'
try
edit fp8_block16 'checkpoint-?00' 's/"shape":\[2,3\]/"shape":[6,1]/'
try
edit fp8_block16 'checkpoint-?00' 's/"shape":\[2,3\]/"shape":[6]  /'
try

# another dtype; scales of F16 and BF16 would be as long
edit fp8_block16 'checkpoint-?00' 's/"dtype":"F32","shape":\[2,3\]/"dtype":"I32","shape":[2,3]/'
try
edit fp8_block16 checkpoint-200 's/"dtype":"F32","shape":\[2,3\]/"dtype":"U32","shape":[2,3]/'
try
try --exclude 'down_proj'

# two scales
edit fp8_block16 'checkpoint-?00' 's/up_proj.weight_scale_inv"/down_proj.weight_scale"  /'
try

# copied or left out, they need not fit: codes and both scales
rm -rf series
cp -R "$fixtures/scaled/channel" series
chmod -R u+w series
LC_ALL=C sed -i 's/up_proj.input_scale"/up_proj.scale"      /' series/*
for options in '' '--rule up_proj.weight$=copy' '--rule up_proj=copy' '--exclude scale' '--exclude up_proj'; do
    # shellcheck disable=SC2086
    "$phema" synth --quiet --no-sync --force --sigma-rel 0.1 $options series out.safetensors 2>err >out
    echo "$? $(grep '^posthoc-ema:' err)"
done

# blocks by config.json
edit fp8_block16 checkpoint-100 's/x/x/'
sed -i 's/16/17/g' series/checkpoint-200/config.json
try
for text in '[0, 16]' '[16]' '[16, -16]' '"16"' '[1e400, 1]'; do
    echo "{\"quantization_config\": {\"weight_block_size\": $text}}" >series/checkpoint-100/config.json
    try
done
echo '{' >series/checkpoint-100/config.json
try

echo "- blocks whose size no shape says"
blocks=$fixtures/trainers/fp8_block16/checkpoint-300/model.safetensors
"$phema" synth -q --no-sync --convert "$blocks" converted.safetensors 2>&1
"$phema" synth -q --no-sync --convert --dtype bf16 "$blocks" converted.safetensors 2>&1
"$phema" synth -q --no-sync --dtype same --weights <(printf 'checkpoint-%s 0.5\n' 100 200) \
    "$fixtures/trainers/fp8_block16" out.safetensors --force --to 200 2>&1

echo "- new scales"
"$phema" synth -q --no-sync --dtype same --sigma-rel 0.1 --exclude scale "$fixtures/scaled/channel" new.safetensors 2>&1
"$phema" synth -q --no-sync --dtype same --sigma-rel 0.1 --part 1/2 "$fixtures/scaled/channel" new.safetensors 2>&1
"$phema" synth -q --no-sync --sigma-rel 0.1 --into "${blocks%/*}/model.safetensors" "$fixtures/scaled/channel" new.safetensors 2>&1
ls
