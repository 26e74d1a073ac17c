# Shared by tests that are scripts. They source it before they change the directory. It defines
#   fail MESSAGE...   prints "TEST: MESSAGE" on stderr; the test continues, and has failed
#   failed            0, or 1 after a call of fail; the test's exit status
#   work              an empty directory, removed when the test ends
#   search_paths_are_absolute FILE...  fails for each file with a library search path that depends on the
#                     current directory
#   call_it PROGRAM   later commands find PROGRAM as posthoc-ema, whatever its name and place
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
        while [ -n "$path" ]; do # an element follows the last colon as well
            element=${path%%:*} path=${path#*:}
            case $element in
            /* | \$ORIGIN | \$ORIGIN/*) ;;
            *) fail "$file looks for libraries in '$element', which is no absolute directory" ;;
            esac
        done
    done
}
