# EDM2's own reconstruct_phema.py sums in float32 and rounds to fp16; on these files a float64 sum rounds to
# the same values. For a directory of pickles the outputs are pickles. They have the length of the newest snapshot,
# and differ from it only where averaged tensors lie.
"$phema" synth -q --metric profile --sigma-rel 0.07,0.12,0.2 "$fixtures/edm2/snapshots" out/
for sigma in 0.070 0.120 0.200; do
    "$phema" diff out/phema-0000016-$sigma.pkl "$fixtures/edm2/reconstructed/phema-0000016-$sigma.pkl"
done
"$phema" synth -q --metric profile --sigma-rel 0.07 "$fixtures/edm2/snapshots" plain.safetensors
"$phema" diff plain.safetensors "$fixtures/edm2/reconstructed/phema-0000016-0.070.safetensors"
newest=$fixtures/edm2/snapshots/network-snapshot-0000016-0.100.pkl
cmp -l "$newest" out/phema-0000016-0.070.pkl >differences || true
"$phema" inspect --json "$newest" | tr '{' '\n' >tensors
awk 'FNR == NR { if (match($0, /"kind": *"param"/)) {
                     offset = $0; sub(/.*"offset": */, "", offset); sub(/[,}].*/, "", offset)
                     size = $0; sub(/.*"nbytes": */, "", size); sub(/[,}].*/, "", size)
                     from[++n] = offset; to[n] = offset + size } next }
     { is_in = 0; for (i = 1; i <= n; i++) is_in = is_in || ($1 > from[i] && $1 <= to[i])
       n_in += is_in; n_out += !is_in }
     END { print n_in + 0 " bytes of tensors differ, " n_out + 0 " others" }' \
    tensors differences
