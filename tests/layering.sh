#!/usr/bin/env bash
# The plan of the house, held against the includes: which room opens which door, who alone may
# know an outside library, and what no file may hold.
#   tests/layering.sh ROOT
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1

# room: the doors it opens besides base's and its own (as in CMakeLists.txt)
declare -A opens=(
    [base]=""
    [formats]=""
    [profile]=""
    [accumulate]=""
    [writer]=""
    [compare]="formats accumulate"
    [gen]="profile formats accumulate writer"
    [spec]="profile"
    [plan]="profile formats spec"
    [device]="profile cuda"
    [cuda]=""
    [synth]="plan profile formats accumulate writer device cuda"
    [plot]="profile"
    [api]="synth plan profile formats accumulate"
    [search]=""
    [cli]="device plot synth plan spec profile formats accumulate writer compare gen search"
)
base_doors="error span dtype element file input cleanup text json cpu parallel arena memory ledger crc32 hash number pattern sort claims library"

for room in src/*/; do
    room=$(basename "$room")
    [ -n "${opens[$room]+known}" ] || fail "src/$room is not in the plan"
    allowed=" $base_doors $room ${opens[$room]-} "
    while IFS=: read -r file include; do
        door=$(sed -E 's/.*"phema\/([a-z0-9_]+)\.h".*/\1/' <<<"$include")
        [[ $allowed == *" $door "* ]] || fail "$file opens the door of $door"
    done < <(grep -oE '#include "phema/[a-z0-9_]+\.h"' -r "src/$room" --include='*.[ch]' --include='*.inc')
    # a header without phema/ is private: it must be the room's own
    while IFS=: read -r file include; do
        header=$(sed -E 's/.*"([^"]+)".*/\1/' <<<"$include")
        [ -e "src/$room/$header" ] || fail "$file includes $header, which is not in its room"
    done < <(grep -oE '#include "[^"]+"' -r "src/$room" | grep -v '"phema/')
done

for header in include/phema/*.h; do
    name=$(basename "$header" .h)
    [[ " $base_doors " == *" $name "* ]] || [ -d "src/$name" ] || fail "$header is the door of no room"
done

only_in() { # an include, the files that may have it
    local pattern=$1 files
    shift
    files=$(grep -lE "#include <($pattern)" -r src include | sort | tr '\n' ' ')
    for file in $files; do
        [[ " $* " == *" $file "* ]] || fail "$file includes <$pattern>"
    done
}
only_in 'jansson\.h' src/base/json.c
only_in 'zlib\.h' src/base/crc32.c
only_in 'xxhash\.h' src/base/hash.c src/base/hash_blocks.c src/base/hash_avx2.c src/base/hash_avx512.c
only_in '(lapacke|cblas)\.h'
only_in 'pcre2\.h' src/base/pattern.c
only_in 'zstd' src/formats/zstd_content.c src/writer/zstd.c
only_in 'cairo.*' src/plot/cairo.c
only_in 'cuda|cublas|cusolver' src/cuda/blas.c src/cuda/kernels.cu src/cuda/runtime.c src/cuda/solver.c
only_in 'dlfcn\.h' src/base/library.c
grep -nE '^\s*(abort|exit|_exit)\(' -r src --include='*.c' | grep -v '^src/base/cleanup.c' &&
    fail "only main ends the program"
grep -nE '\.\./shared' -r . --include='*' --exclude-dir=.git --exclude-dir=build \
    --exclude=layering.sh -I | head -n 3 | grep . && fail "a file names a path outside the project"
while IFS= read -r file; do
    head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || fail "$file has no SPDX line"
done < <(find src tests bench include -name '*.c')
exit $failed
