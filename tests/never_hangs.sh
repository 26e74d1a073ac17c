#!/usr/bin/env bash
# Every verb ends within five minutes when address space or threads are short, on this machine and on one of
# 64 processors. It ends with status 0, or 7 and one sentence, and leaves no partial file.
#   tests/never_hangs.sh PROGRAM DIRECTORY_OF_SHIMS
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
if [ -n "${sanitize-}" ]; then
    echo "skipped: sanitizers take terabytes of address space; to run it: scripts/test -R never_hangs" >&2
    exit 77
fi
chmod 755 "$work"
cp "$1" "$work/posthoc-ema" || exit 1 # for a user who may not look into the build directory
program=$work/posthoc-ema
shims=$(readlink -f "$2") || exit 1
cores=$shims/libcores.so
cd "$work" || exit 1
mkdir -m 777 out

# 720 snapshots of bfloat16 are solved by LAPACK, and the others are few.
"$program" gen -q --params 2000 --no-sync small >/dev/null &&
    "$program" gen -q --params 64 --count 360 --dtype bf16 --no-sync large >/dev/null &&
    "$program" synth -q --no-sync --sigma-rel 0.1 small made.safetensors >/dev/null &&
    for part in 1/2 2/2; do
        "$program" synth -q --no-sync --part $part --sigma-rel 0.1 small parts.safetensors >/dev/null || exit 1
    done || exit 1
printf '#!/bin/sh\necho 1.5\n' >score
chmod 755 score
# A name and a command per line; each runs in an empty directory.
small_verbs=$(cat <<'END'
version --version
help help
help_of_a_verb synth --help
synth synth --no-sync --sigma-rel 0.1 ../small made.safetensors
synth_compressed synth --no-sync --sigma-rel 0.1 ../small made.safetensors.zst
synth_many synth --no-sync --sigma-rel 0.05:0.25:0.02 ../small made/
weights weights --sigma-rel 0.1 ../small
plan plan --sigma-rel 0.1 ../small
inspect inspect ../small
inspect_one inspect ../made.safetensors
diff diff ../made.safetensors ../made.safetensors
verify verify ../made.safetensors
gen gen --no-sync made
convert convert --sigma-rel 0.1
plot_svg plot weights --sigma-rel 0.1 ../small -o made.svg
plot_png plot weights --sigma-rel 0.1 ../small -o made.png
plot_pdf plot profiles --sigma-rel 0.1 ../small -o made.pdf
report report --sigma-rel 0.1 ../small -o made.html
search search --sigma-rel 0.05:0.2 --exec=../score\_{} ../small made
join join parts.safetensors
END
)
large_verbs=$(cat <<'END'
large_weights weights --sigma-rel 0.1 ../large
large_weights_of_the_paper weights --metric profile --sigma-rel 0.1 ../large
large_synth synth --no-sync --sigma-rel 0.1 ../large made.safetensors
large_plan plan --sigma-rel 0.1 ../large
END
)

under=(env)   # the words before the program
address_kb=unlimited
owner=$(id -u)
n_runs=0
# All verbs of a list; statuses allowed in addition to 7 with a sentence: "0", or "0 only"
try_all() {
    local list=$1 statuses=$2 name line words status said
    while read -r name line; do
        rm -rf out/*
        [ "$name" = join ] && cp -p parts.safetensors.* out/ && chown -R "$owner" out
        read -ra words <<<"$line"
        words=("${words[@]//\\_/ }") # a space in a word
        (
            cd out && ulimit -v "$address_kb" &&
                exec timeout -k 5 300 "${under[@]}" "$program" "${words[@]}" </dev/null >../stdout 2>../stderr
        )
        status=$?
        n_runs=$((n_runs + 1))
        said="$name, $what: status $status: $(tail -n 2 stderr)"
        case $status in
        0) ;;
        7)
            [ "$statuses" = "0 only" ] && fail "$said"
            [ "$(grep -c '^posthoc-ema: ' stderr)" = 1 ] || fail "no one sentence: $said"
            ;;
        124 | 137) fail "hangs: $said" ;;
        *) fail "$said" ;;
        esac
        [ "$name" = join ] || [ -z "$(find out -name '*.partial*')" ] || fail "leaves a partial file: $said"
    done <<<"$list"
}

# Slow: never_hangs, other sizes of memory: 150 more runs of all verbs.
sizes=(50 150) sizes_of_64_processors=(100 400) least=100
if [ "${PHEMA_SLOW-}" = 1 ]; then
    sizes=(50 70 100 150) sizes_of_64_processors=(50 100 200 400) least=200
fi
# More than enough is never more difficult.
for mb in "${sizes[@]}"; do
    address_kb=$((mb * 1024))
    what="$mb MB of address space"
    statuses=0
    [ "$mb" -ge 150 ] && statuses="0 only"
    try_all "$small_verbs" "$statuses"
done
for mb in "${sizes_of_64_processors[@]}"; do
    address_kb=$((mb * 1024))
    what="$mb MB of address space and 64 processors"
    under=(env "LD_PRELOAD=$cores")
    statuses=0
    [ "$mb" -ge 200 ] && statuses="0 only"
    [ "$mb" = 400 ] || try_all "$small_verbs" "$statuses"
    try_all "$large_verbs" 0
    under=(env)
    what="$mb MB of address space"
    [ "$mb" -ge 400 ] || statuses=0
    try_all "$large_verbs" "$statuses"
done
address_kb=$((4 << 20))
what="4 GB of address space and 64 processors"
under=(env "LD_PRELOAD=$cores")
try_all "$large_verbs" "0 only"

address_kb=unlimited
if "$shims/without_threads" true; then
    what="no threads"
    under=("$shims/without_threads")
    try_all "$small_verbs" "0 only"
    try_all "$large_verbs" "0 only"
    what="no threads, and 64 processors"
    under=("$shims/without_threads" env "LD_PRELOAD=$cores")
    try_all "$small_verbs" "0 only"
else
    echo "never_hangs: the kernel does not forbid threads; that was not tried"
fi
what="one thread more"
under=(env "LD_PRELOAD=$shims/libfaults.so $cores" FAULT_CALLS=pthread_create FAULT_WITH=EAGAIN FAULT_AT=2
    FAULT_STAYS=1)
try_all "$small_verbs" "0 only"

# The limit on processes does not apply to root, so a user without other processes is used.
user=$((100000 + $$))
if [ "$(id -u)" -eq 0 ] &&
    setpriv --reuid "$user" --regid "$user" --clear-groups "$program" --version >/dev/null 2>&1; then
    what="ulimit -u without another thread"
    owner=$user
    # shellcheck disable=SC2016 # the inner shell's
    under=(setpriv --reuid "$user" --regid "$user" --clear-groups bash -c 'ulimit -u 1 && exec "$@"' bash)
    try_all "$small_verbs" 0
else
    echo "never_hangs: no other user can be had; ulimit -u was not tried"
fi
[ "$n_runs" -gt "$least" ] || fail "only $n_runs runs were made"
exit $failed
