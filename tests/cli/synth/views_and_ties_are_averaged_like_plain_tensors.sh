# PyTorch files with transposed, stepped, expanded and shared tensors: their average equals the average of the
# same tensors written out plainly.
# shellcheck disable=SC2086 # options are several words
for file in views.pt module_state_dict.pth nested.pt dtypes.pt; do
    mkdir torch plain
    for t in 1 2; do cp "$fixtures/torch/$file" torch/x-$t.pt; done
    skip="--exclude ^(c128|complex128)"
    pattern='x-(?<time>[0-9]+)\.'
    echo "x-2.pt 1" >one
    "$phema" synth -q $skip --name-regex "$pattern" --weights one torch plain/x-1.safetensors >/dev/null || continue
    # the program's own outputs are snapshots only where a list names them
    cp plain/x-1.safetensors plain/x-2.safetensors
    printf 'x-1.pt 0.5\nx-2.pt 0.25\n' >weights
    "$phema" synth -q $skip --name-regex "$pattern" --weights weights torch a.safetensors >/dev/null
    "$phema" diff -v a.safetensors plain/x-1.safetensors |
        awk -v file=$file 'NR > 1 && $1 > 0.24 && $1 < 0.26 { n++ } END { print file ":", n + 0, "tensors are 3/4 of what they were" }'
    rm -r torch plain a.safetensors
done
