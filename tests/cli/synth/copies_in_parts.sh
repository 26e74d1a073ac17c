# Copies of checkpoints that several processes write, in any order: file and provenance are those of one process.
parts() { # N EXTENSION ARGUMENTS...: the first in the middle
    local n=$1 out=parts.$2 i
    for ((i = 0; i < n; i++)); do
        "$phema" synth -q --no-sync -j$((1 + i % 3)) --part $((1 + (n / 2 + n - i) % n))/"$n" "${@:3}" "$out" || return
    done
    [ -e "$out" ] && echo "$out is there before it is joined"
    "$phema" join -q --no-sync "$out" >/dev/null
}
check() { # NAME EXTENSION ARGUMENTS...
    local n
    "$phema" synth -q --no-sync "${@:3}" "one.$2" >/dev/null
    for n in 1 2 3 5; do
        parts $n "$2" "${@:3}" || echo "$1: $n parts: status $?"
        cmp "one.$2" "parts.$2" && { [ ! -e "one.$2.json" ] || cmp "one.$2.json" "parts.$2.json"; } && echo "$1: $n parts: same"
        if [[ $1 = *zip* ]]; then unzip -tqq "parts.$2"; fi
        rm -f "parts.$2" "parts.$2.json"
        ls parts* 2>/dev/null
    done
    rm -f one.*
}
exec 2>&1
edm2=$fixtures/edm2/snapshots ema=(--input-sigma "0.05,0.28" --update-every 5 "$fixtures/ema_pytorch/snapshots")
check "a pickle" pkl --sigma-rel 0.1 "$edm2"
check "a zip" pt --sigma-rel 0.1 "${ema[@]}"
check "a zip, read back" pt --verify --sigma-rel 0.1 "${ema[@]}"
twins() { # FILE: two snapshots with its contents, and their weights
    local end=${1##*.}
    rm -rf run
    mkdir run
    for i in 1 2; do cp "$1" run/a.$i."$end"; done
    printf "a.1.$end 0.5\na.2.$end 0.25\n" >weights
    of_twins=(--name-regex 'a[.](?<time>\d+)' --weights weights run)
}
twins "$fixtures/torch/zipfile_streamed_zip64.pt"
check "a zip with descriptors" pt "${of_twins[@]}"
twins "$fixtures/torch/no_crc32.pt"
check "without checksums" pt "${of_twins[@]}" # unzip would complain
twins "$fixtures/legacy/plain.pt"
check "the format before 1.6" pth "${of_twins[@]}"
rm run/*
python3 "$fixtures/../tests/support/torch_zips.py" run
printf 'a.1.pt 0.5\na.2.pt 0.25\n' >weights
check "a zip of large records" pt "${of_twins[@]}"
check "a zip of large records, for one of its tensors" pt --include right "${of_twins[@]}"
check "a conversion to a zip" pt --convert --into run/a.1.pt run/a.2.pt

echo "- a part that is killed, and another process' part over its leftovers"
faults="env LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so FAULT_CALLS=pwrite,pwrite64 FAULT_PATH=.partial FAULT_WITH=KILL"
export ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}
"$phema" synth -q --no-sync "${of_twins[@]}" one.pt >/dev/null
part() { "$phema" synth -q --no-sync --part "$1"/3 "${@:2}" "${of_twins[@]}" kill.pt || echo "part $1: status $?"; }
[[ ${sanitize-} = *thread* ]] && faults=false # that sanitizer does not take the shim
for at in 1 2 4 7 11; do
    for resume in "" --resume; do
        part 2 $resume
        for i in 1 3 2; do
            # shellcheck disable=SC2086 # words
            { $faults FAULT_AT=$at "$phema" synth -q --no-sync -j1 $resume --part $i/3 "${of_twins[@]}" kill.pt >/dev/null; } 2>/dev/null
            [ -e kill.pt ] && echo "killed at $at: it is there"
        done
        for i in 3 1 2; do part $i $resume; done
        "$phema" join -q --no-sync kill.pt >/dev/null
        cmp one.pt kill.pt && cmp one.pt.json kill.pt.json && echo "killed at $at${resume:+, resumed}: same, $(echo kill*)"
        rm kill*
    done
done
rm one.pt*
rm -rf run weights
"$phema" gen -q --count 4 --params 200k --tensors 7 --dtype f16 --no-sync run >/dev/null
check "another checkpoint" safetensors --sigma-rel 0.1 --into run/snapshot-0004096-0.050.safetensors run

echo "- several at once, by the processes of a launcher"
"$phema" synth -q --no-sync --sigma-rel 0.05,0.1,0.2 --at 200,300 "${ema[@]}" whole/ >/dev/null
pids=()
for i in 2 0 1; do
    RANK=$i WORLD_SIZE=3 "$phema" synth -q --no-sync --part auto --sigma-rel 0.05,0.1,0.2 --at 200,300 "${ema[@]}" auto/ >printed.$i &
    pids+=($!)
done
for i in "${pids[@]}"; do wait "$i" || echo "status $?"; done
cat printed.* | sort
diff -r whole auto && echo "same"
RANK=0 WORLD_SIZE=3 "$phema" synth --no-sync --part auto --sigma-rel 0.05,0.1,0.2 --at 200,300 "${ema[@]}" auto/ 2>&1 | grep -c 'up to date'

echo "- a provenance that is in the way"
"$phema" synth -q --no-sync --sigma-rel 0.2 "$edm2" way.pkl
cp way.pkl.json kept
rm way.pkl
"$phema" synth -q --no-sync --part 1/2 --sigma-rel 0.1 "$edm2" way.pkl
echo "status $?"
mv way.pkl.json aside
for i in 1 2; do "$phema" synth -q --no-sync --part $i/2 --sigma-rel 0.1 "$edm2" way.pkl; done
cp run/snapshot-0004096-0.050.safetensors way.pkl.json # of another kind, not left by a join
"$phema" join -q way.pkl
echo "status $?: $(echo way.pkl*)"
mv aside way.pkl.json
"$phema" join -q --no-sync --force way.pkl
"$phema" verify -q way.pkl && cmp -s kept way.pkl.json || echo "replaced"

echo "- what one process has to write"
twins "$fixtures/torch/views.pt"
"$phema" synth -q --part 1/2 --exclude '^(c128|complex128)' "${of_twins[@]}" out.pt
echo "status $?: $(echo out*)"
