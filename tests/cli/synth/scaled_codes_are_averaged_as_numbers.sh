# fixtures/trainers/fp8_*: blocks of 128 x 128 and of 16 x 16, whole tensors, scales that are powers of two. The truths
# are means of codes times scales, from torch. fixtures/scaled: names without config.json, a scale for each row.
for series in "$fixtures"/trainers/fp8_*; do
    name=${series##*/}
    n=0
    for checkpoint in "$series"/checkpoint-*; do n=$((n + 1)); done
    for checkpoint in "$series"/checkpoint-*; do
        echo "${checkpoint##*/} $(awk "BEGIN { printf \"%.17g\", 1 / $n }")"
    done >"$name.txt"
    echo "$name"
    run=("$phema" synth --quiet --no-sync --weights "$name.txt" --exclude input_scale)
    "${run[@]}" --dtype f32 "$series" "$name.safetensors"
    "$phema" diff --quiet --tolerance 1e-6 "$name.safetensors" "$series/truth_mean.safetensors" && echo near
    for io in auto mmap read; do
        "${run[@]}" --io $io "$series" "$name-$io.safetensors"
        cmp "$name-$io.safetensors" "$name-auto.safetensors"
    done
    "$phema" diff --quiet --tolerance 3e-3 "$name-auto.safetensors" "$series/truth_mean.safetensors" && echo near
    "$phema" diff --quiet --tolerance 5e-4 "$name-auto.safetensors" "$series/truth_mean.safetensors"
    "$phema" verify --quiet "$name-auto.safetensors"
    for i in 1 2; do "${run[@]}" --part $i/2 "$series" "$name-parts.safetensors"; done
    "$phema" join --quiet "$name-parts.safetensors"
    cmp "$name-parts.safetensors" "$name-auto.safetensors"
    "$phema" inspect "$name-auto.safetensors" | grep -E '\] .* model'
done

# the message, and scales of activations, which are copied with their dtype
series=$fixtures/trainers/fp8_tensor
"$phema" synth --no-sync --force --weights fp8_tensor.txt --dtype f16 "$series" out.safetensors 2>&1 | grep fp8\ tensor
"$phema" inspect out.safetensors | grep -E '\] .* model'
"$phema" inspect "$series/checkpoint-30" | grep -E '\] .* (model|lm)|left|copied'
"$phema" inspect --json "$series/checkpoint-30" | tr -d ' \n' | grep -co '"scale":{"name":"model.layers.0.._proj.weight_scale","block":\[1,96\]}'
"$phema" synth --no-sync --weights fp8_tensor.txt --dtype same "$series" same.safetensors 2>&1 | grep fp8\ tensor
"$phema" inspect same.safetensors | grep -E '\] .* model'

# solved weights, from a sample of the numbers
for kind in block channel none; do
    series=$fixtures/scaled/$kind
    "$phema" synth --quiet --no-sync --sigma-rel 0.1 "$series" $kind.safetensors
    "$phema" plan --quiet --sigma-rel 0.1 "$series" >plan.txt || echo "status $?"
    "$phema" weights --quiet --sigma-rel 0.1 "$series" >weights.txt || echo "status $?"
    "$phema" verify --quiet $kind.safetensors
done

# --exclude leaves out the numbers, and their scale with them; a conversion keeps codes unless it says a dtype
series=$fixtures/scaled/channel
newest=$series/snapshot-0003000-0.050.safetensors
for exclude in weight_scale '_proj\.weight$'; do
    "$phema" synth --quiet --no-sync --force --sigma-rel 0.1 --exclude $exclude "$series" out.safetensors
    "$phema" inspect out.safetensors | grep -E '\] .* model'
done
"$phema" synth --quiet --no-sync --sigma-rel 0.1 --rule 'proj.weight$=copy' "$series" copied.safetensors
"$phema" diff copied.safetensors "$newest" | sed 's/^[0-9. ]*//'
"$phema" synth --quiet --no-sync --convert "$newest" converted.safetensors
"$phema" inspect converted.safetensors | grep -E '\] .* model'
"$phema" synth --quiet --no-sync --force --convert --dtype f32 "$newest" converted.safetensors
"$phema" inspect converted.safetensors | grep -E '\] .* model'
"$phema" diff converted.safetensors "$newest"
