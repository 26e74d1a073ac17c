# shellcheck shell=bash
# Shared by the scripts; sourced.
#   need TOOL PACKAGE     ends the script with one line when TOOL is missing
#   status_line LABEL     shows the newest line of standard input in one line of the terminal
need() {
    command -v "$1" >/dev/null && return
    echo "${0#"$PWD/"}: $1 is missing; try: apt-get install $2" >&2
    exit 1
}

# Shows nothing if standard error is not a terminal, to keep logs short.
status_line() {
    if ! [ -t 2 ] || [ "${TERM:-dumb}" = dumb ]; then
        cat >/dev/null
        return
    fi
    local line columns
    columns=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2)
    [ "${columns:-0}" -gt 0 ] || columns=80
    while IFS= read -r line; do
        line="$1: $line"
        printf '\r\033[K%s' "${line:0:columns-1}" >&2
    done
    printf '\r\033[K' >&2
}

#   step TITLE               begins a step of a long script
#   beside NAME COMMAND...   runs a command or function beside the steps that follow, until `await NAME`, which shows
#                            what it printed and ends the script when it failed
#   show_minutes             what each step took
step_titles=() step_starts=()
declare -A beside_pids=()
step() {
    printf '\n== %d:%02d %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
    step_titles+=("$*")
    step_starts+=("$SECONDS")
}
show_minutes() {
    local i
    step_starts+=("$SECONDS")
    printf '\n| step | minutes |\n|---|---:|\n'
    for i in "${!step_titles[@]}"; do
        echo "${step_titles[i]} $((step_starts[i + 1] - step_starts[i]))"
    done | awk '{ s = $NF; sub(/ [0-9]+$/, ""); printf "| %s | %.1f |\n", $0, s / 60; sum += s }
        END { printf "| sum | %.1f |\n", sum / 60 }'
}
beside() {
    local name=$1
    shift
    mkdir -p build/beside
    rm -f "build/beside/$name.status"
    set -m # a group of processes of its own, to end it with all that it started
    (
        set +m
        trap 'echo $? >"build/beside/$name.status"' EXIT
        "$@"
    ) >"build/beside/$name.log" 2>&1 </dev/null &
    set +m
    beside_pids[$name]=$!
}
await() {
    local status=0
    wait "${beside_pids[$1]}" 2>/dev/null || status=$?
    if [ "$status" = 127 ]; then # bash may have no record of a process that ends at this moment
        status=$(cat "build/beside/$1.status" 2>/dev/null || echo 1)
    fi
    unset "beside_pids[$1]"
    cat "build/beside/$1.log"
    [ "$status" = 0 ] || exit "$status"
}
end_beside() { # at the end of the script, of what it did not wait for
    local pid
    for pid in "${beside_pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
}

#   tests_left_by LOG...    the tests that bare systems skipped for lack of a tool or of privileges, and those of the CUDA
#                           module and of libraries, which only show here what they are about: a pattern for ctest -R
tests_left_by() {
    local skipped
    skipped=$(sed -nE 's/^  skipped: ([a-z0-9_., ]+): .*/\1/p' "$@" | tr -d ' ' | tr ',' '\n' |
        sed -E 's/^(cli\.[a-z0-9_]+\.[a-z0-9_]+)\..*/\1/' | sort -u | paste -sd '|') # of a case, its file
    echo "^(unit\.gpu\..*|mpi\.(.*\.)?openmpi|links|library|package|${skipped//./\\.})\$"
}
