# A leftover under a name used before publishing is used only if nobody else may write it. Otherwise the run
# would publish what others wrote into it.
[[ $sanitize = *thread* ]] && echo "the thread sanitizer does not take the shim" >&2 && exit 77
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --steps 30 --params 1M --no-sync run >/dev/null
# shellcheck source=/dev/null
. "$(dirname "$0")/../../support/leftovers.sh"
try_leftovers chmod o+w
echo "- of the group"
echo other >out.safetensors.partial && chmod 664 out.safetensors.partial
refuses "a file" out.safetensors.partial out.safetensors synth -q --sigma-rel 0.1 run out.safetensors
echo "- what is no file is not opened: the program would wait"
for kind in .safetensors.partial .safetensors.journal .safetensors.part-1-of-2; do
    mkfifo -m 600 "out$kind"
    options=()
    [ $kind = .safetensors.journal ] && options=(--resume)
    [ $kind = .safetensors.part-1-of-2 ] && options=(--part 2/2)
    refuses "a FIFO" "out$kind" out.safetensors synth -q "${options[@]}" --sigma-rel 0.1 run out.safetensors
    ln -s elsewhere "out$kind"
    refuses "a link" "out$kind" out.safetensors synth -q "${options[@]}" --sigma-rel 0.1 run out.safetensors
done
[ ! -e elsewhere ] || echo "a link was followed"
echo "- a hard link to something of one's own"
echo kept >kept
ln kept out.safetensors.partial
refuses "of a part" out.safetensors.partial out.safetensors synth -q --part 1/2 --sigma-rel 0.1 run out.safetensors
"$phema" synth -q --part 1/2 --sigma-rel 0.1 run out.safetensors && ln kept out.safetensors.part-2-of-2
refuses "of a marker" out.safetensors.part-2-of-2 out.safetensors synth -q --part 2/2 --sigma-rel 0.1 run out.safetensors
ln kept out.safetensors.partial && "$phema" synth -q --sigma-rel 0.1 run out.safetensors
cat kept
