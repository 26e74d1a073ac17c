# Faults outside the program: streams that accept nothing, directories and files that change during use,
# two runs at once, limits. Each checks the status against the allowed ones, and checks out.
places="full_stdout closed_stdout left_pipe directory_removed directory_read_only descriptors small_disk two_at_once"
changes="cut replaced deleted"

list_places() {
    local place change way
    for place in $places; do echo "place/fresh/$place/-"; done
    for place in small_disk two_at_once; do
        for way in sharded zst pt strided several resume; do echo "place/$way/$place/-"; done
    done
    for way in resume_left resume_left_sharded resume_left_zst resume_left_copy; do
        for change in cut changed gone; do
            echo "place/$way/journal_$change/-"
            echo "place/$way/partial_$change/-"
        done
    done
    for change in $changes; do
        for way in fresh mapped direct ahead pt; do echo "place/$way/snapshot_$change/-"; done
    done
}

run_place() { # UNIT
    local unit=$1 name place
    IFS=/ read -r _ name place _ <<<"$unit"
    describe_case "$name"
    local case_dir=$work/case/$name tried=0
    declare -A statuses=()
    "try_$place"
    [ $tried -gt 0 ] && row "$unit" place "$place" $tried
}

# checks that status is one of those given, and the state of the files
expect() { # "statuses", what was done
    local found
    tried=$((tried + 1))
    statuses[$status]=$((${statuses[$status]:-0} + 1))
    found=$(
        [[ " $1 " = *" $status "* ]] || echo "status $status, expected $1"
        said
        out_is_right
    )
    [ "$found" ] && wrong_here "$found" "$2: ${args[*]}" "$unit"
}

# ---- Streams ----

try_stream() { # redirect: a function that runs its arguments with another stdout
    local given=("${args[@]}") verb
    for verb in "synth -q --json --sigma-rel 0.1 in/run out/o.safetensors" "weights -q --json --sigma-rel 0.1 in/run" "inspect -q in/run" "synth --help" "--version"; do
        put_old
        # shellcheck disable=SC2206 # words
        args=($verb)
        { "$1" env "${2:---default-signal=PIPE}" "$phema" "${args[@]}" 2>err; } 2>/dev/null
        tried=$((tried + 1))
        statuses[$status]=$((${statuses[$status]:-0} + 1))
        [ "$status" = "$3" ] || wrong_here "status $status, expected $3" "$1: $verb" "$unit"
        [ "$status" = 141 ] || [ "$(grep -c '^posthoc-ema: ' err)" = 1 ] || wrong_here "says $(cat err)" "$1: $verb" "$unit"
        status=141 && found=$(each_is_whole) && [ "$found" ] && wrong_here "$found" "$1: $verb" "$unit"
    done
    args=("${given[@]}")
}
into_full() { "$@" >/dev/full; status=$?; }
into_closed() { "$@" >&-; status=$?; }
into_left_pipe() {
    "$@" > >(exec sleep 0 <&-)
    status=$?
}
try_full_stdout() { try_stream into_full --default-signal=PIPE 6; }
try_closed_stdout() { try_stream into_closed --default-signal=PIPE 6; }
into_gone() { # nobody reads: the reader has gone before the program starts
    mkfifo pipe 2>/dev/null
    # shellcheck disable=SC2217 # holds the pipe open
    sleep 600 <pipe &
    local reader=$!
    exec 5>pipe
    kill $reader
    wait $reader
    "$@" >&5
    status=$?
    exec 5>&-
}
try_left_pipe() {
    try_stream into_gone --default-signal=PIPE 141
    try_stream into_gone --ignore-signal=PIPE 6
}

# ---- While it runs ----

# Starts the command, which stops before its N-th pwrite to out; false if there are fewer.
start_stopped() { # N
    put_old
    rm -f told
    env --default-signal=TERM LD_PRELOAD="$shim" FAULT_CALLS=pwrite FAULT_PATH=/out/ FAULT_WITH=STOP \
        "FAULT_AT=$1" FAULT_TOLD=told "$phema" "${args[@]}" >answer 2>err &
    pid=$!
    local state=
    while read -r _ _ state _ 2>/dev/null <"/proc/$pid/stat"; do
        [ "$state" = T ] && return 0
        [ "$state" = Z ] && break
        sleep 0.002
    done
    wait "$pid"
    status=$?
    return 1
}

go_on() {
    kill -CONT "$pid"
    { wait "$pid"; } 2>/dev/null
    status=$?
}

# At some of the writing calls.
stops() { if [ "$quick" ]; then echo 1 3; else seq 12; fi; }

try_directory_removed() {
    local n pid
    for n in $(stops); do
        start_stopped "$n" || break
        rm -rf out
        go_on
        mkdir -p out
        expect 6 "out is removed before write $n"
    done
}

try_two_at_once() {
    local n pid found
    for n in $(stops); do
        start_stopped "$n" || break
        tried=$((tried + 1))
        "$phema" "${args[@]}" >/dev/null 2>second
        status=$?
        statuses[$status]=$((${statuses[$status]:-0} + 1))
        # shellcheck disable=SC2015
        [ $status = 6 ] && grep -q 'another run is writing it' second ||
            wrong_here "status $status: $(cat second)" "a second run: ${args[*]}" "$unit"
        go_on
        expect 0 "a second run before write $n"
    done
}

# Uses a copy of the series, since it is changed.
try_change() { # function
    local n pid given=("${args[@]}")
    args=("${args[@]/#in\//mine/}")
    rm -rf mine undisturbed
    cp -rL in/. mine
    put_old
    run_now
    mv out undisturbed
    for n in $(stops); do
        rm -rf mine
        cp -rL in/. mine
        start_stopped "$n" || break
        local files=(mine/run/*.safetensors)
        [[ $name = pt ]] && files=(mine/ema_pytorch/*.pt)
        [[ $name = ahead ]] && files=(mine/large/*.safetensors)
        "$1" "${files[0]}"
        go_on
        # checksums and provenance are written after the last check of the snapshots
        if [ $status = 0 ] && diff -rq undisturbed out >/dev/null; then
            tried=$((tried + 1))
            statuses[0]=$((${statuses[0]:-0} + 1))
            continue
        fi
        expect 3 "$1 before write $n"
        grep -q -F "${files[0]##*/}" err || wrong_here "does not name the file: $(cat err)" "$1 before write $n: ${args[*]}" "$unit"
    done
    rm -rf mine undisturbed
    args=("${given[@]}")
}
cut_short() { truncate -s 1000 "$1"; }
replace() { cp "$1" other && printf x >>other && mv other "$1"; }
try_snapshot_cut() { try_change cut_short; }
try_snapshot_replaced() { try_change replace; }
try_snapshot_deleted() { try_change rm; }

# ---- Resuming ----

# Each byte, or some of them.
places_in() { # FILE, about how many
    local size most=$2
    [ $quick ] && most=20
    size=$(stat -c %s "$1")
    seq 0 $((1 + (most < size ? (size - 1) / most : 0))) $((size - 1))
}

change_byte() { # FILE, where
    printf '\252' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

go_on_with() { # FILE that is changed, about how many places, what is done
    local at
    put_old
    for at in $(places_in "$1" "$2"); do
        put_old
        "$3" "$1" "$at"
        run_now
        # a file that does not begin like a journal is refused, and not removed
        if [ $status = 6 ] && [[ $(cat err) = *'expected a journal'* ]]; then
            rm out/*.journal
            run_now
        fi
        expect 0 "$3 $1 at $at"
    done
}
cut_at() { truncate -s "$2" "$1"; }
partial_file() { # that holds tensors
    local found
    for found in out/*.plain.partial out/*.partial/*-00002-* out/*.safetensors.partial; do
        [ -f "$found" ] && echo "$found" && return
    done
}
try_journal_cut() { put_old && go_on_with out/*.journal 2000 cut_at; }
try_journal_changed() { put_old && go_on_with out/*.journal 2000 change_byte; }
try_partial_cut() { put_old && go_on_with "$(partial_file)" 100 cut_at; }
try_partial_changed() { put_old && go_on_with "$(partial_file)" 100 change_byte; }
try_journal_gone() { put_old && rm out/*.journal && run_now && expect 0 "the journal is removed"; }
try_partial_gone() {
    put_old && rm "$(partial_file)" && run_now && expect 0 "the partial file is removed"
    put_old && rm -r out/*.partial && run_now && expect 0 "all partial files are removed"
}

# ---- Limits ----

try_descriptors() {
    local n
    for n in $(seq 8 "$([ "$quick" ] && echo 8 || echo 1)" 80); do
        put_old
        { (ulimit -n "$n" && exec "$phema" "${args[@]}" >answer 2>err); } 2>/dev/null
        status=$?
        [ $status = 127 ] || expect "0 7" "ulimit -n $n" # 127: too few to load it
    done
}

try_directory_read_only() {
    local as=(env)
    if [ "$(id -u)" = 0 ]; then
        chmod a+rx "$work" && chmod -R a+rX "$work/in"
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        "${as[@]}" "$phema" --version >/dev/null 2>&1 || { skip "directory_read_only: nobody may run $phema; to run it: chmod a+x the directories above it"; return; }
    fi
    put_old
    chmod 555 out
    "${as[@]}" "$phema" "${args[@]}" >answer 2>err
    status=$?
    chmod 755 out
    expect 6 "out is read-only"
}

# A real full disk, if this user may mount one: tmpfs does not reserve space before writes.
try_small_disk() {
    local kib
    unshare -m true 2>/dev/null || { skip "small_disk: this user may not mount one; to run it: sudo scripts/test -R faults"; return; }
    for kib in 4 40 400 800; do
        put_old
        # shellcheck disable=SC2016 # for that shell to expand
        unshare -m bash -c 'mount -t tmpfs -o size='$kib'k none out && cp -r '"$case_dir"'/old/. out &&
            { "$@" >answer 2>err; status=$?; rm -rf seen; cp -r out seen; exit $status; }' - "$phema" "${args[@]}"
        status=$?
        rm -rf out && mv seen out
        expect "0 6" "a disk of $kib KiB"
    done
}

skip() { echo "tests/faults: skipped: $1" >&2; }
