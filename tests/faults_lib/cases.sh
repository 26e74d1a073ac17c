# The commands into which faults are injected. Each runs in its own directory: `in` leads to the inputs,
# and outputs go to `out`. case/NAME/old is the state before; case/NAME/new is the result of a run without
# faults.
#   args     the command
#   form     file: each file of out may be new or old; directory: out is all old or all new;
#            part: parts of one output, which finish completes and joins; answer: on stdout
#   begun    the state before is left by the command, killed at its N-th slow write
#   pace     faults that slow it down, so that random kills fall between its writes
describe_case() { # NAME; sets args, form, also sets old_from (a case whose output is there before)
    form=file old_from='' begun='' pace=()
    local slow=("LD_PRELOAD=$shim" FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=25)
    local synth=(synth -q -j2) width=(--sigma-rel 0.1 in/run)
    local torch=(--input-sigma "0.05,0.28" --update-every 5 --sigma-rel 0.15 in/ema_pytorch)
    case $1 in
        fresh) args=("${synth[@]}" "${width[@]}" out/o.safetensors) ;;
        fresh_old) args=("${synth[@]}" -f "${width[@]}" out/o.safetensors) old_from=other ;;
        other) args=("${synth[@]}" --sigma-rel 0.2 in/run out/o.safetensors) ;;
        mapped) args=("${synth[@]}" --io mmap "${width[@]}" out/o.safetensors) ;;
        direct) args=("${synth[@]}" --io direct --drop-cache "${width[@]}" out/o.safetensors) ;;
        ahead) args=("${synth[@]}" --io direct --sigma-rel 0.1 in/large out/o.safetensors) ;;
        sharded) args=("${synth[@]}" --shard-size 100k "${width[@]}" out/o) form=directory ;;
        sharded_old) args=("${synth[@]}" -f --shard-size 100k "${width[@]}" out/o) form=directory old_from=sharded_other ;;
        sharded_other) args=("${synth[@]}" --shard-size 50k --sigma-rel 0.2 in/run out/o) form=directory ;;
        zst) args=("${synth[@]}" "${width[@]}" out/o.safetensors.zst) ;;
        from_zst) args=("${synth[@]}" --sigma-rel 0.1 in/zst out/o.safetensors) ;;
        pt) args=("${synth[@]}" "${torch[@]}" out/o.pt) form=pair ;;
        pt_old) args=("${synth[@]}" -f "${torch[@]}" out/o.pt) form=pair old_from=pt_other ;;
        pt_other) args=("${synth[@]}" "${torch[@]/0.1/0.2}" out/o.pt) form=pair ;;
        pkl) args=("${synth[@]}" --sigma-rel 0.1 in/edm2 out/o.pkl) form=pair ;;
        strided) args=("${synth[@]}" --name-regex '(?<time>\d+)' --weights in/views/weights in/views out/o.pt) form=pair ;;
        several) args=("${synth[@]}" --sigma-rel "0.05,0.1,0.2" in/run out/many/) ;;
        several_old) args=("${synth[@]}" -f --sigma-rel "0.05,0.1,0.2" in/run out/many/) old_from=several ;;
        large) args=("${synth[@]}" --sigma-rel 0.1 in/large out/o.safetensors) ;;
        large_sharded) args=("${synth[@]}" --shard-size 1M --sigma-rel 0.1 in/large out/o) form=directory ;;
        large_zst) args=("${synth[@]}" --sigma-rel 0.1 in/large out/o.safetensors.zst) ;;
        large_several) args=("${synth[@]}" --sigma-rel "0.05,0.1,0.2" in/large out/many/) ;;
        part) args=("${synth[@]}" --part 2/2 "${width[@]}" out/o.safetensors) form=part old_from=part_one ;;
        part_one) args=("${synth[@]}" --part 1/2 "${width[@]}" out/o.safetensors) ;;
        frames) args=("${synth[@]}" --sigma-rel 0.07 in/frames out/o.safetensors.zst) ;;
        part_zst) args=("${synth[@]}" --part 2/2 --sigma-rel 0.07 in/frames out/o.safetensors.zst) form=part old_from=part_one_zst ;;
        part_one_zst) args=("${synth[@]}" --part 1/2 --sigma-rel 0.07 in/frames out/o.safetensors.zst) ;;
        join_zst) args=(join -q out/o.safetensors.zst) form=part old_from=part_zst ;;
        join) args=(join -q out/o.safetensors) form=part old_from=part ;;
        resume) args=("${synth[@]}" --resume "${width[@]}" out/o.safetensors) ;;
        resume_left) args=("${synth[@]}" --resume "${width[@]}" out/o.safetensors) begun=8 ;;
        resume_left_sharded) args=("${synth[@]}" --resume --shard-size 100k "${width[@]}" out/o) form=directory begun=18 ;;
        resume_left_zst) args=("${synth[@]}" --resume "${width[@]}" out/o.safetensors.zst) begun=8 ;;
        resume_left_copy) args=("${synth[@]}" --resume --into in/run/snapshot-0000040-0.100.safetensors "${width[@]}" out/o.safetensors) form=pair begun=7 ;;
        resume_large) args=("${synth[@]}" --resume --sigma-rel 0.1 in/large out/o.safetensors) pace=("${slow[@]}") ;;
        resume_large_sharded) args=("${synth[@]}" --resume --shard-size 1M --sigma-rel 0.1 in/large out/o) form=directory pace=("${slow[@]}") ;;
        resume_large_zst) args=("${synth[@]}" --resume --sigma-rel 0.1 in/large out/o.safetensors.zst) pace=("${slow[@]}") ;;
        resume_large_several) args=("${synth[@]}" --resume --sigma-rel "0.05,0.1,0.2" in/large out/many/) pace=("${slow[@]}") ;;
        resume_large_copy) args=("${synth[@]}" --resume --into in/large/snapshot-0000080-0.100.safetensors --sigma-rel 0.1 in/large out/o.safetensors) form=pair pace=("${slow[@]}") ;;
        resume_large_part) args=("${synth[@]}" --resume --part 2/2 --sigma-rel 0.1 in/large out/o.safetensors) form=part old_from=large_part_one pace=("${slow[@]}") ;;
        resume_part_zst) args=("${synth[@]}" --resume --part 2/2 --sigma-rel 0.07 in/frames out/o.safetensors.zst) form=part old_from=part_one_zst pace=("${slow[@]}") ;;
        large_part_one) args=("${synth[@]}" --part 1/2 --sigma-rel 0.1 in/large out/o.safetensors) ;;
        gen) args=(gen -q --count 2 --steps 40 --params 20k --tensors 4 --seed 1 out/run) form=directory ;;
        weights) args=(weights -q --json "${width[@]}") form=answer ;;
        plan) args=(plan -q "${width[@]}" out/o.safetensors) form=changing_answer ;;
        inspect) args=(inspect -q in/run) form=answer ;;
        diff) args=(diff -q in/run/snapshot-0000040-0.100.safetensors in/run/snapshot-0000040-0.050.safetensors) form=answer ;;
    esac
}
cases="fresh fresh_old mapped direct ahead sharded sharded_old zst frames from_zst pt pt_old pkl strided several several_old resume resume_left resume_left_sharded resume_left_zst resume_left_copy part part_zst join join_zst gen weights plan inspect diff"

kill_cases="large large_sharded large_zst large_several pt pkl part part_zst join_zst gen
    resume_large resume_large_sharded resume_large_zst resume_large_several resume_large_copy resume_large_part resume_part_zst"

make_inputs() {
    "$phema" gen -q --count 4 --steps 40 --params 200k --tensors 6 --dtype f32 --no-sync in/run >/dev/null
    "$phema" gen -q --count 8 --steps 80 --params 1M --tensors 12 --dtype f32 --no-sync in/large >/dev/null
    "$phema" gen -q --count 1 --steps 8 --params 3M --tensors 4 --dtype f32 --no-sync in/frames >/dev/null # larger than a frame
    mkdir in/zst in/views
    local file
    for file in in/run/*.safetensors; do
        "$phema" synth -q --no-sync --convert "$file" "in/zst/$(basename "$file").zst" >/dev/null
    done
    cp -r "$fixtures/edm2/snapshots" in/edm2
    cp -r "$fixtures/ema_pytorch/snapshots" in/ema_pytorch
    cp "$fixtures/torch/views.pt" in/views/a.1.pt
    cp "$fixtures/torch/views.pt" in/views/a.2.pt
    printf 'a.1.pt 0.5\na.2.pt 0.25\n' >in/views/weights
}

inputs_sum() { find in -type f | sort | xargs sha256sum | sha256sum; }

make_reference() { # NAME: what it leaves, and what it says
    local name=$1 old_from begun pace
    [ -e "case/$name/status" ] && return
    describe_case "$name"
    [ "$old_from" ] && make_reference "$old_from"
    describe_case "$name"
    mkdir -p "case/$name/run"
    cp -rT "case/${old_from:-none}/new" "case/$name/old" 2>/dev/null || mkdir "case/$name/old"
    ln -s ../../../in "case/$name/run/in"
    [ -z "$begun" ] || begin_case "$name"
    cp -r "case/$name/old" "case/$name/run/out"
    (cd "case/$name/run" && "$phema" "${args[@]}") >"case/$name/answer" 2>"case/$name/err"
    echo $? >"case/$name/status"
    mv "case/$name/run/out" "case/$name/new"
    if [ "$(cat "case/$name/status")" -gt 1 ] || [ -s "case/$name/err" ]; then
        echo "tests/faults: $name: $(cat "case/$name/err")" >&2
        exit 2
    fi
}

# Killed when only a part of it is in the journal.
begin_case() { # NAME
    mkdir "case/$name/run/out"
    {
        (cd "case/$name/run" && exec env "LD_PRELOAD=$shim" FAULT_CALLS=pwrite FAULT_PATH=.partial FAULT_PAUSE=70 \
            FAULT_WITH=KILL "FAULT_AT=$begun" "$phema" "${args[@]}") >/dev/null
        [ $? = 137 ] || exit 2
    } 2>/dev/null
    rm -rf "case/$name/old"
    mv "case/$name/run/out" "case/$name/old"
    local journals=("case/$name/old/"*.journal)
    [ ${#journals[@]} = 1 ] && [ "$(stat -c %s "${journals[0]}")" -gt 60 ] && return
    echo "tests/faults: $name: nothing is in its journal" >&2
    exit 2
}
