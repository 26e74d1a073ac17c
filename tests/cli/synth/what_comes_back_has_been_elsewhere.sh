# A tensor whose first and last snapshots are equal is averaged all the same: (0 + 2 * 1 + 0) / 4.
mkdir run
header='{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
for n in 1 2 3; do
    f=run/snapshot-000000$n-0.050.safetensors
    printf '%b' "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0" >$f
    printf '%s' "$header" >>$f
    if [ $n = 2 ]; then printf '\0\0\200\77\0\0\200\77'; else printf '\0\0\0\0\0\0\0\0'; fi >>$f
    echo "snapshot-000000$n-0.050.safetensors $([ $n = 2 ] && echo 0.5 || echo 0.25)" >>weights.txt
done
for io in mmap read; do
    "$phema" synth -q -f --no-sync --io $io --weights weights.txt run out.safetensors >/dev/null
    "$phema" inspect --raw --tensor w out.safetensors | od -An -tfF
done
