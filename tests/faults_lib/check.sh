# Checks the files that an attempt leaves. A finding is a line of results/UNIT.wrong.
wrong() { # UNIT, what
    printf '%s: %s\n' "$1" "$2" >>"results/${1//\//_}.wrong"
}

# One attempt in the current directory: restores `out` and runs the command with the given environment.
# Sets status; its stdout is in answer, its stderr in err.
attempt() { # VARIABLE=VALUE...
    put_old
    run_now "$@"
}

put_old() {
    rm -rf out told
    cp -r "$case_dir/old" out
    if [ "$form" = part ] && compgen -G 'out/*.part-*' >/dev/null; then # by which join knows what it has published
        sed -i -E "s/(\"inode\": )[0-9]+/\1$(stat -c %i "${args[-1]}.partial")/" out/*.part-*-of-2
    fi
}

run_now() {
    {
        timeout -k 5 "$longest" env --default-signal=INT,PIPE,HUP,TERM "$@" "$phema" "${args[@]}" >answer 2>err
        status=$?
    } 2>/dev/null # the shell's own word on who was killed
}

# True if finished work remains for another run to resume.
resumes() { [[ " ${args[*]} " = *' --resume '* ]]; }

# Files that a killed or resumable run may leave.
left_over='@(*.partial*|*.journal)'

# One line on stderr after a failure, and perhaps a command to try; none after success.
said() {
    local lines
    mapfile -t lines <err
    case $status in
        0 | 1 | 129 | 130 | 137 | 143) [ ${#lines[@]} -eq 0 ] || echo "status $status and says ${lines[*]}" ;;
        *) [ ${#lines[@]} -eq 1 ] || [[ ${#lines[@]} -eq 2 && ${lines[1]} = '  try: posthoc-ema '* ]] &&
            [[ ${lines[0]} = 'posthoc-ema: '* ]] || echo "${#lines[@]} lines on stderr: ${lines[*]}" ;;
    esac
}

# Every file of out is the old one or the complete new one, and no old file is missing.
each_is_whole() { # [pattern of names that may be left]
    local path
    while read -r path; do
        # shellcheck disable=SC2053 # a pattern
        [[ -n ${1:-} && $path = $1 ]] && continue
        cmp -s "out/$path" "$case_dir/new/$path" || cmp -s "out/$path" "$case_dir/old/$path" || echo "left $path"
    done < <(cd out && find . -type f | sed 's|^\./||')
    while read -r path; do
        # shellcheck disable=SC2053 # a pattern
        [[ -n ${1:-} && $path = $1 ]] || [ -e "out/$path" ] || echo "$path is gone"
    done < <(cd "$case_dir/old" && find . | sed 's|^\./||')
    while read -r path; do
        # shellcheck disable=SC2053 # a pattern
        [[ -n ${1:-} && $path = $1 ]] || [ -d "$case_dir/new/$path" ] || [ -d "$case_dir/old/$path" ] || echo "left $path/"
    done < <(cd out && find . -type d | sed 's|^\./||')
}

# A replaced file may be left if the message says so.
all_old_or_all_new() {
    if grep -q ': is in place, but what it replaced is left' err && diff -rq "$case_dir/old/o" out/o.partial >/dev/null; then
        rm -r out/o.partial
    fi
    diff -rq "$case_dir/old" out >/dev/null || diff -rq "$case_dir/new" out >/dev/null || echo "neither old nor new: $(cd out && find . -type f -exec ls -l --time-style=+ {} + | tr '\n' ' ')"
}

# Runs a failed part again and joins the parts.
parts_come_right() {
    local found whole=fresh path=${args[-1]}
    [[ ${args[*]} = *in/large* ]] && whole=large
    [[ $path = *.zst ]] && whole=frames
    [[ ${args[0]} = join ]] || "$phema" "${args[@]}" >again 2>&1 || echo "run again: $(cat again)"
    local parts=(out/*.part-*)
    if [ ${#parts[@]} -gt 0 ] || ! [ -e "$path" ]; then
        found=$("$phema" join -q "$path" 2>&1 >/dev/null) || echo "joined: $found"
    fi
    diff -rq "$work/case/$whole/new" out || true
}

# Checks after a failure that the program has reported.
out_is_right() { # may_litter
    local litter=
    [ "${1:-}" ] && litter=$left_over
    if [ "$status" -gt 1 ] && resumes; then
        comes_right_after_kill
        return
    fi
    if [ "$status" -le 1 ] && [ -z "$litter" ]; then
        [ "$status" = "$(cat "$case_dir/status")" ] || echo "status $status"
        [ "$form" = answer ] && ! cmp -s answer "$case_dir/answer" && echo "another answer"
        if [ "$form" = part ]; then parts_come_right; else diff -rq "$case_dir/new" out; fi
        return
    fi
    case $form in
        part) parts_come_right ;;
        pair | directory) if [ "$litter" ]; then each_is_whole "$litter"; else all_old_or_all_new; fi ;;
        *) each_is_whole "$litter" ;;
    esac
}

# Checks after a kill: outputs are complete, leftovers have their own names. The same command then makes
# everything and removes the leftovers.
comes_right_after_kill() {
    if [ "$form" = part ]; then
        parts_come_right
        return
    fi
    if [ "$form" != directory ] || [[ ${args[0]} = gen ]]; then
        each_is_whole "$left_over"
    else
        local others=(-x '*.partial' -x '*.journal')
        { diff -rq "${others[@]}" "$case_dir/old" out >/dev/null || diff -rq "${others[@]}" "$case_dir/new" out >/dev/null || echo "torn"; }
    fi
    # outputs published before the kill are not replaced without --force
    local again=("${args[@]}") path
    case $form in
        *answer) ;;
        pair) [ -e out/o.pt ] || [ -e out/o.pkl ] || [ -e out/o.safetensors ] && again+=(-f) ;;
        *) for path in $(cd "$case_dir/new" && find . -type f); do
            [ -e "out/$path" ] && again+=(-f) && break
        done ;;
    esac
    "$phema" "${again[@]}" >answer 2>again || { [ $? -gt 1 ] && echo "run again: $(cat again)"; }
    diff -rq "$case_dir/new" out
}
