# shards of two processes, of one file and of two, average as the whole tensors do that torch had;
# the truth has no integers, and the scalar as a list of one
work=$PWD
cd "$fixtures" || exit
for run in dcp_safetensors dcp_safetensors_two_files; do
    set -- "$run"/step-*
    for step; do
        echo "${step##*/}"
    done | awk -v n=$# '{ printf "%s %.17g\n", $1, 1 / n }' >"$work/weights.txt"
    out=$work/out.safetensors
    "$phema" synth --quiet --force --dtype f32 --weights "$work/weights.txt" "$run" "$out" >"$work/path"
    "$phema" diff --tolerance 1e-7 "$out" "$run/truth_mean.safetensors" | grep -v out.safetensors
    "$phema" inspect --tensor model.scale --raw "$out" | od -An -t f4
    "$phema" inspect --tensor model.scale --raw "$run/truth_mean.safetensors" | od -An -t f8
    "$phema" synth --quiet --force --convert "${!#}" "$out" >"$work/path"
    "$phema" diff "$out" "$run/newest.safetensors"
done
