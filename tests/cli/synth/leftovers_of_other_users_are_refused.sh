# Leftovers of another user under a name used before publishing are refused: the output would belong to that user.
# This includes root, who may write all of them, and a user who may write them in a shared directory.
[[ $sanitize = *thread* ]] && echo "the thread sanitizer does not take the shim" >&2 && exit 77
[ "$(id -u)" = 0 ] || { echo "making files of other users needs root" >&2 && exit 77; }
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" gen -q --count 2 --steps 30 --params 1M --no-sync run >/dev/null
# shellcheck source=/dev/null
. "$(dirname "$0")/../../support/leftovers.sh"
# user 65534 may own the files in a directory that root still owns
try_leftovers chown 65534
echo "- without --resume as well"
mkdir out.partial && touch out.partial/model.safetensors && chown 65534 out.partial/model.safetensors
refuses "a file in a directory" out.partial out synth -q --shard-size 1M --sigma-rel 0.1 run out
echo "- a user who is not root"
chmod 755 .. && chmod 1777 .
user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$phema" "$@"; }
if user --version >/dev/null 2>&1; then
    try() { user "$@"; }
fi
for mode in 600 644 666; do
    echo other >out.safetensors.partial && chmod $mode out.safetensors.partial
    [ "$(declare -f try | grep -c user)" = 1 ] || chown 65534 out.safetensors.partial
    refuses "mode $mode" out.safetensors.partial out.safetensors synth -q --sigma-rel 0.1 run out.safetensors
done
