# What tests that are scripts begin with; sourced, before they change the directory. Gives them
#   fail WHAT...      says "TEST: WHAT" on stderr; the test goes on, and has failed
#   failed            0, or 1 since fail was called; what the test exits with
#   work              an empty directory, removed when the test ends
#   search_paths_are_absolute FILE...  fails for each in which the loader is told to look for libraries
#                     in the current directory, or in one that depends on it
#   call_it PROGRAM   the commands that follow find PROGRAM as posthoc-ema, whatever its name and place
failed=0
test_name=$(basename "$0" .sh)
fail() {
    echo "$test_name: $*" >&2
    failed=1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
call_it() {
    mkdir "$work/bin"
    ln -s "$1" "$work/bin/posthoc-ema"
    export PATH="$work/bin:$PATH"
}
search_paths_are_absolute() {
    local file path element
    for file in "$@"; do
        path=$(readelf -d "$file" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2:/p')
        while [ -n "$path" ]; do # what is behind the last colon is an element as well
            element=${path%%:*} path=${path#*:}
            case $element in
            /* | \$ORIGIN | \$ORIGIN/*) ;;
            *) fail "$file looks for libraries in '$element', which is no absolute directory" ;;
            esac
        done
    done
}
