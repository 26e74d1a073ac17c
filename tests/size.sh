#!/usr/bin/env bash
# Lines and files of each folder stay within its budget. A commit that raises one says what for; one that makes a folder
# smaller lowers it. Lines of READMEs do not count.
#   tests/size.sh ROOT
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1

# folder, lines, files
budgets='
python/posthocema  4000  15
include           7604  61
src             107656 455
src/accumulate    1454  10
src/api           1444   7
src/base          4833  27
src/cli           7403  35
src/design        1778   7
src/formats      12700  54
src/gen           1645   6
src/gpu           2033  12
src/ops           6400  30
src/output        5913  21
src/plan          7660  30
src/plot          3032  14
src/profile       2804  11
src/render        6195  20
src/schedule       634   4
src/search        1959   6
src/series       15953  59
src/solver        8652  33
src/synth         8449  43
src/writer        6473  24
'
for folder in include src src/*/; do
    folder=${folder%/}
    grep -q "^$folder " <<<"$budgets" || fail "$folder has no budget"
done
while read -r folder most_lines most_files; do
    [ -n "$folder" ] || continue
    mapfile -t files < <(find "$folder" -type f -not -path '*/__pycache__/*' '(' -name '*.[chi]*' -o -name '*.cu' -o -name '*.py' ')' | sort)
    lines=$(cat "${files[@]}" | wc -l)
    [ "$lines" -le "$most_lines" ] || fail "$folder has $lines lines; its budget is $most_lines"
    [ "${#files[@]}" -le "$most_files" ] || fail "$folder has ${#files[@]} files; its budget is $most_files"
done <<<"$budgets"
exit "$failed"
