#!/usr/bin/env bash
# Includes follow the dependencies of modules (phema_add_module in CMakeLists.txt). Only the files named
# here include an outside library.
#   tests/layering.sh ROOT
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1

# public headers with other names than their modules
declare -A headers=(
    [base]="arena array checksum claims cleanup clock cpu dtype error file_reader filesystem json library mapped_file memory
        memory_profile number packed parallel path quad record read_queue regex setting sort span strbuf zstd_seek_table"
    [profile]="family"
    [solver]="decay_fit"
    [plan]="decays"
    [series]="tensor_sets"
    [output]="sink"
    [gpu]="cuda_plugin"
    [ops]="design_question inspect searching team"
    [render]="progress report terminal"
)

# module: all that it may use, which is more than CMakeLists.txt names of it
declare -A may_use
while read -r module below; do
    may_use[$module]=" $module"
    for other in $below; do
        [ -n "${may_use[$other]-}" ] || fail "CMakeLists.txt: $module depends on $other, which comes later"
        may_use[$module]+=" ${may_use[$other]-}"
    done
done < <(sed -nE 's/^phema_add_module\(([a-z]+)( DEPENDS( [a-z ]*[a-z]))?.*/\1 \3/p' CMakeLists.txt)
[ ${#may_use[@]} -gt 10 ] || fail "no modules were found in CMakeLists.txt"

declare -A home
for module in "${!may_use[@]}"; do
    for header in $module ${headers[$module]-}; do
        home[$header]=$module
    done
    [ -d "src/$module" ] || fail "CMakeLists.txt: there is no src/$module"
done
for header in include/phema/*.h; do
    [ -n "${home[$(basename "$header" .h)]-}" ] || fail "$header belongs to no module"
done

for directory in src/*/; do
    module=$(basename "$directory")
    [ -n "${may_use[$module]-}" ] || {
        fail "CMakeLists.txt does not have the module $module"
        continue
    }
    while IFS=: read -r file include; do
        header=${include#*\"} header=${header%\"}
        if [[ $header == phema/* ]]; then
            header=${header##*/} header=${header%.h}
            [[ " ${may_use[$module]} " == *" ${home[$header]-none} "* ]] ||
                fail "$file includes phema/$header.h of the module ${home[$header]-none}"
        elif [[ $file == src/gpu/cuda/* ]]; then # a shared library of its own
            [ -e "src/gpu/cuda/$header" ] || fail "$file includes $header, which is not in src/gpu/cuda"
        else
            [ -e "src/$module/$header" ] || fail "$file includes $header, which is not in src/$module"
        fi
    done < <(grep -oE '#include "[^"]+"' -r "src/$module")
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
only_in 'zlib\.h' src/base/checksum.c
only_in 'xxhash\.h' src/base/checksum.c src/base/checksum_kernel.inc
only_in '(lapacke|cblas)\.h'
only_in 'liburing\.h' src/base/read_queue.c
only_in 'pcre2\.h' src/base/regex.c
only_in 'zstd' src/formats/zstd/decoder.c src/writer/zstd_encoder.c
only_in 'mpfr\.h' src/solver/mpfr_system.c
only_in 'cairo.*' src/plot/cairo.c
only_in 'cuda|cublas|cusolver' src/gpu/cuda/cublas.c src/gpu/cuda/kernels.cu src/gpu/cuda/runtime.c \
    src/gpu/cuda/cusolver.c
only_in 'dlfcn\.h' src/base/library.c
grep -nE 'PHEMA_FORM_' -r src --include='*.[ch]' | grep -v '^src/output/' &&
    fail "only src/output compares output forms: others read phema_output_traits"

# The formats' own tables are the only lists of extensions: each one is a text of src/ once. Longer
# texts, such as names of output files and patterns of trainers' names, are not meant.
extensions=$(grep -rhoE '\{"[a-z]*(\.[a-z0-9]+)+", (PHEMA_NAMES|0)' src/formats | cut -d'"' -f2
    sed -n '/foreign_extensions\[\] = /,/;/p' src/formats/registry.c | grep -oE '"\.[a-z0-9]+"' | tr -d '"')
[ "$(wc -w <<<"$extensions")" -gt 12 ] || fail "no extensions of formats were found in src/formats"
for extension in $extensions; do
    places=$(grep -rnF "\"$extension\"" src include)
    [ "$(wc -l <<<"$places")" -eq 1 ] || fail "a second list of extensions has $extension:
$places"
done
grep -nE '^\s*(abort|exit|_exit)\(' -r src --include='*.c' | grep -v '^src/base/cleanup.c' &&
    fail "only main ends the program"
grep -nE '\.\./shared' -r . --include='*' --exclude-dir=.git --exclude-dir=build \
    --exclude=layering.sh -I | head -n 3 | grep . && fail "a file names a path outside the project"
while IFS= read -r file; do
    head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || fail "$file has no SPDX line"
done < <(find src tests bench include -name '*.c')
exit $failed
