# kill -9 at random moments; the same command then makes everything. Seeds are fixed; moments depend on the
# machine.
list_kills() {
    local case
    for case in $kill_cases; do echo "kill/$case/random/KILL"; done
}

seconds_of() { # what an undisturbed run takes; sets duration [us]
    local start=${EPOCHREALTIME/./}
    attempt "${pace[@]}"
    duration=$((${EPOCHREALTIME/./} - start))
}

# Runs in the background and is killed after a moment; sets status.
kill_after() { # microseconds
    {
        env "${pace[@]}" "$phema" "${args[@]}" >answer 2>err &
        pid=$!
        sleep "$(($1 / 1000000)).$(printf %06d $(($1 % 1000000)))"
        kill -KILL "$pid"
        wait "$pid"
        status=$?
    } 2>/dev/null
}

run_kill() { # UNIT
    local unit=$1 name duration pid found moment number more tried=0
    IFS=/ read -r _ name _ <<<"$unit"
    describe_case "$name"
    local case_dir=$work/case/$name
    declare -A statuses=()
    RANDOM=$((1 + ${#name}))
    seconds_of # once to warm up
    seconds_of
    for ((number = 1; number <= n_kills; number++)); do
        put_old
        more=1
        resumes && more=$((1 + RANDOM % 3)) # interrupted more than once
        for ((; more > 0; more--)); do
            moment=$(((RANDOM * 32768 + RANDOM) % (duration * 11 / 10)))
            kill_after $moment
            tried=$((tried + 1))
            statuses[$status]=$((${statuses[$status]:-0} + 1))
            [ $status = 137 ] || break
        done
        found=$(
            [ $status = 0 ] || [ $status = 137 ] || echo "status $status: $(cat err)"
            if [ $status = 137 ]; then comes_right_after_kill; else out_is_right; fi
        )
        [ "$found" ] && wrong_here "$found" "kill -9 after $moment us: ${args[*]}" "$unit"
    done
    row "$unit" random "$name" "$tried"
}
