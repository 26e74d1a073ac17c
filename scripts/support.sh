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
