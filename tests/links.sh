#!/usr/bin/env bash
# The program is not linked with CUDA, OpenBLAS or cairo, and loads none of them when it starts. So it
# starts quickly, in little memory, and without threads of libraries. OpenBLAS and cairo are loaded when
# they are needed. The CUDA plug-in is linked with its libraries, and exports only its table. Neither
# program nor plug-in, built or installed, searches for libraries in the current directory.
#   tests/links.sh BUILD_DIR PROGRAM [MODULE]
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
build=$(readlink -f "$1") && program=$(readlink -f "$2") || exit 1
module=${3:+$(readlink -f "$3")}
needed() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}
[ -n "$(needed "$program")" ] || fail "readelf says nothing of $program"
needed "$program" | grep -iE 'cuda|cublas|cusolver|nvidia' && fail "$program is linked with CUDA"
seldom='blas|lapack|gfortran|gomp|cairo|X11|xcb|fontconfig'
needed "$program" | grep -iE "$seldom" && fail "$program is linked with what few runs need"
if [ -n "$module" ]; then
    for library in libcublas libcusolver; do
        needed "$module" | grep -q "^$library\.so" || fail "$module is not linked with $library"
    done
    shown=$(readelf --dyn-syms -W "$module" |
        awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }' | sort | tr '\n' ' ')
    [ "$shown" = "posthoc_ema_cuda " ] || fail "$module shows $shown"
fi

# Built and installed files; also the library where it is built.
built=("$program")
[ -n "$module" ] && built+=("$module")
[ -e "$build/libposthoc-ema.so" ] && built+=("$build/libposthoc-ema.so")
cmake --install "$build" --prefix "$work/prefix" >"$work/log" || {
    cat "$work/log" >&2
    fail "cannot be installed"
}
mapfile -t installed < <(find "$work/prefix" -type f \( -path '*/bin/*' -o -name '*.so*' \))
[ ${#installed[@]} -ge ${#built[@]} ] || fail "not all is installed: ${installed[*]}"
search_paths_are_absolute "${built[@]}" "${installed[@]}"

# Plants a library under each name that is searched for, in the current directory; not under the names
# of libc, which the planted library needs itself.
cat >"$work/planted.c" <<'end'
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void leave_mark(void)
{
    (void)close(open(MARK, O_WRONLY | O_CREAT, 0666));
}
end
"${CC:-cc}" -shared -fPIC -DMARK="\"$work/mark\"" -o "$work/planted.so" "$work/planted.c" || fail "no library to plant"
mkdir "$work/in" && cd "$work/in" || exit 1
for name in $(for file in "${built[@]}"; do needed "$file"; done |
    grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so') libcairo.so.2 \
    libopenblas.so.0 liblapacke.so.3 libcuda.so.1 posthoc-ema-cuda.so; do
    cp "$work/planted.so" "$name"
done
unset LD_LIBRARY_PATH LD_PRELOAD
is_not_run() { # description of the step
    [ ! -e "$work/mark" ] || fail "$1: a library of the current directory was run"
    rm -f "$work/mark"
}
# check that a planted library does leave its mark
LD_PRELOAD=$work/in/libcairo.so.2 "$(command -v readelf)" --version >/dev/null
[ -e "$work/mark" ] || fail "the planted library leaves no mark"
rm -f "$work/mark"
for one in "$program" "$work/prefix/bin/posthoc-ema"; do
    "$one" --version >/dev/null || fail "$one --version fails"
    is_not_run "$one --version"
    "$one" gen -q -f --count 4 --params 100 --no-sync run >/dev/null || fail "$one gen fails"
    "$one" plot -q -f profiles --sigma-rel 0.1 run -o a.png >/dev/null || fail "$one plot fails"
    is_not_run "$one plot"
    "$one" weights -q --solver lapack --sigma-rel 0.1 run >/dev/null || fail "$one weights fails"
    is_not_run "$one weights"
    "$one" synth -q -f --device cuda --sigma-rel 0.1 run out.safetensors >/dev/null 2>&1
    is_not_run "$one synth --device cuda"
done

# Which libraries are loaded, and when.
[ -e "$build/libposthoc-ema.so" ] || exit $failed # a static program contains them
mkdir "$work/loading" && cd "$work/loading" || exit 1
loaded() { # the libraries that a command loads
    LD_DEBUG=files LD_DEBUG_OUTPUT=files "$program" "$@" >/dev/null 2>&1 || fail "$* fails with status $?"
    sed -nE 's/.*calling init: .*\/([^/]+)$/\1/p' files.*
    rm -f files.*
}
"$program" gen -q --no-sync --count 4 few >/dev/null || fail "gen fails"
for ((t = 1; t <= 360; t++)); do
    printf '{"time": %d, "sigma_rel": 0.05}, {"time": %d, "sigma_rel": 0.1}, ' $t $t
done | sed 's/\(.*\), $/{"snapshots": [\1]}/' >many.json
loaded --version | grep -q '^libc\.so' || fail "the loader does not say what it loads"
for command in "--version" "synth -q --no-sync --device cpu --sigma-rel 0.1 few out.safetensors"; do
    # shellcheck disable=SC2086 # words
    loaded $command | grep -iE "$seldom|cuda" && fail "$command loads what few runs need"
done
loaded plot -q profiles --sigma-rel 0.1 few -o out.png | grep -q '^libcairo' || fail "cairo draws no PNG"
loaded weights -q --metric profile --sigma-rel 0.1 many.json | grep -q '^libopenblas' ||
    fail "720 snapshots are not solved by OpenBLAS"
exit $failed
