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
include          6950  64
src             91700 469
src/accumulate   1480  11
src/api          1400  11
src/base         4860  38
src/cli          7230  43
src/design       1770   9
src/formats     11600  48
src/gen          1780   8
src/gpu          2040  12
src/ops          5480  38
src/output       5830  28
src/plan         4190  20
src/plot         2950  14
src/profile      2810  12
src/render       5660  25
src/search       1780   4
src/series       8300  31
src/solver       7350  32
src/synth        8800  57
src/writer       7000  28
'
for folder in include src src/*/; do
    folder=${folder%/}
    grep -q "^$folder " <<<"$budgets" || fail "$folder has no budget"
done
while read -r folder most_lines most_files; do
    [ -n "$folder" ] || continue
    mapfile -t files < <(find "$folder" -type f -name '*.[chi]*' -o -type f -name '*.cu' | sort)
    lines=$(cat "${files[@]}" | wc -l)
    [ "$lines" -le "$most_lines" ] || fail "$folder has $lines lines; its budget is $most_lines"
    [ "${#files[@]}" -le "$most_files" ] || fail "$folder has ${#files[@]} files; its budget is $most_files"
done <<<"$budgets"
exit "$failed"
