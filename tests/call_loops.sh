#!/usr/bin/env bash
# Neither files of src/ nor modules call each other in a loop, directly or through others. The calls are
# read from the relocations of code in the objects; tables of functions are data and do not count.
#   tests/call_loops.sh BUILD_DIR SOURCE_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
root=$(readlink -f "$2")
cd "$1/CMakeFiles" || exit 1

edges() { # "caller callee" for each pair of files
    find . -path './phema_*.dir/src/*.o' ! -path './phema_cuda_module.dir/*' | sort | while IFS= read -r object; do
        name=${object#*/src/}
        [ ! -e "$root/src/${name%.o}" ] || echo "$object" # of a file that was not moved
    done >"$work/objects"
    {
        xargs nm -gA --defined-only <"$work/objects" | sed -nE 's|^[^:]*/src/([^:]*)\.o:[^ ]+ [^ ]+ |defines \1 |p'
        xargs readelf -rW <"$work/objects" | awk '
            /^File: / { file = $2; sub(/.*\/src\//, "", file); sub(/\.o$/, "", file) }
            /^Relocation section/ { is_code = /\.rela\.text/ }
            is_code && $5 != "" { print "uses", file, $5 }'
    } | awk '
        $1 == "defines" { home[$3] = $2 }
        $1 == "uses" { uses[$2 " " $3] }
        END {
            for (use in uses) {
                split(use, part, " ")
                callee = home[part[2]]
                if (callee != "" && callee != part[1])
                    print part[1], callee
            }
        }' | sort -u
}

files=$(edges)
[ "$(wc -l <<<"$files")" -gt 500 ] || fail "too few calls were found to be all of them"
loop=$(tsort <<<"$files" 2>&1 >/dev/null) || fail "files call each other in a loop:
$loop"
loop=$(sed -E 's#/\S+ # #; s#/\S+$##' <<<"$files" | awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null) ||
    fail "modules call each other in a loop:
$loop"
exit $failed
