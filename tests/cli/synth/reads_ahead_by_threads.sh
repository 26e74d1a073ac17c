# Where the kernel refuses io_uring, threads read ahead, and the bytes are the same.
[ -z "${sanitize-}" ] || { echo "skipped: sanitizers do not take the seccomp filter" >&2; exit 77; }
tests=$(dirname "$phema")/tests
"$phema" gen -q --count 1 --steps 40 --params 20M --tensors 9 --dtype f16 run >/dev/null
"$phema" synth -q --no-sync --io read --sigma-rel 0.1 run one.safetensors >/dev/null
for error in EPERM ENOSYS; do
    if ! "$tests/without_uring" $error "$phema" synth -q -f --no-sync --io direct -j2 --sigma-rel 0.1 run out.safetensors >/dev/null 2>refused; then
        grep -q 'cannot read past the page cache' refused || cat refused >&2
        echo "skipped: files cannot be read past the page cache here" >&2
        exit 77
    fi
    cmp one.safetensors out.safetensors && echo "the same bytes after $error"
done
