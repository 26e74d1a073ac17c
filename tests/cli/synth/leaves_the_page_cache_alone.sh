# With --drop-cache neither snapshots nor outputs stay in the page cache; without the option they do. Less than
# a quarter may stay: the kernel does not drop pages that are in use at the moment.
"$phema" gen -q --count 4 --steps 40 --params 4M --tensors 9 --dtype f16 run >/dev/null
resident() { fincore --bytes --noheadings --output RES "$@" | awk '{ n += $1 } END { print n + 0 }'; }
warm() { cat run/*.safetensors >/dev/null; }
if ! command -v fincore >/dev/null; then
    echo "skipped: no fincore; to run it: apt-get install util-linux-extra" >&2
    exit 77
fi
dd of="run/$(ls run | head -n 1)" oflag=nocache conv=notrunc,fdatasync count=0 status=none
if [ "$(resident "run/$(ls run | head -n 1)")" -gt 100000 ]; then
    echo "skipped: files cannot be dropped from the page cache here" >&2
    exit 77
fi
eventually() { # what is printed, test's operator and bytes, options: the kernel may also drop or keep pages for its own reasons
    for ((try = 0; try < 10; try++)); do
        warm
        "$phema" synth -q -f --sigma-rel 0.1 "${@:4}" run out.safetensors >/dev/null
        test "$(resident run/*.safetensors out.safetensors)" "$2" "$3" && echo "$1" && return
    done
}
for io in mmap read; do
    eventually "$io: stays" -gt 64000000 --io $io
    eventually "$io: goes" -lt 16000000 --io $io --drop-cache
    eventually "$io, unsynced: goes" -lt 16000000 --io $io --drop-cache --no-sync
done
