#!/usr/bin/env bash
# The installed library exports exactly the symbols of its header. The example compiles against it, shared
# and static, as C and as C++. Its outputs equal those of the program, in any locale, and the program
# accepts them.
#   tests/library.sh BUILD_DIR SOURCE_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
build=$(readlink -f "$1") || exit 1
source=$(readlink -f "$2") || exit 1
cd "$work" || exit 1
cmake --install "$build" --prefix "$work/prefix" >install.log || {
    cat install.log >&2
    fail "cannot be installed"
    exit 1
}
pc=$(find prefix -name posthoc-ema.pc)
export PKG_CONFIG_PATH=$work/${pc%/*}
lib=$work/$(dirname "$(find prefix -name 'libposthoc-ema.a')")
phema=$work/prefix/bin/posthoc-ema

functions=$(grep -oE '\bposthoc_ema_[a-z_]+\(' "$source/include/posthoc-ema.h" | tr -d '(' | sort -u)
[ "$(wc -l <<<"$functions")" -ge 10 ] || fail "no functions found in the header"
symbols() {
    nm "$@" | awk 'NF == 3 && $2 ~ /[A-TV-Z]/ { print $3 }' | sort -u
}
diff -u --label posthoc-ema.h <(echo "$functions") --label shared \
    <(symbols -D --defined-only "$lib/libposthoc-ema.so") >&2 || fail "other symbols in the shared library"
diff -u --label posthoc-ema.h <(echo "$functions") --label static \
    <(symbols --defined-only "$lib/libposthoc-ema.a") >&2 || fail "other symbols in the static library"
version=$(pkg-config --modversion posthoc-ema)
[ "posthoc-ema $version" = "$("$phema" --version)" ] || fail "pkg-config says version $version"
major=${version%%.*} minor=${version#*.}
[ "$major" = 0 ] && major=0.${minor%%.*}
readelf -d "$lib/libposthoc-ema.so" | grep -q "SONAME.*\[libposthoc-ema.so.$major\]" ||
    fail "the soname is not that of $version"

read -ra flags < <(pkg-config --cflags --libs posthoc-ema)
read -ra flags_static < <(pkg-config --static --cflags --libs posthoc-ema)
example=$source/examples/library/average.c
compile() { # output, compiler, its options and files
    local output=$1
    shift
    "$@" -Wall -Wextra -Werror -pedantic -o "$output" >cc.log 2>&1 || {
        cat cc.log >&2
        fail "$output does not compile"
    }
}
compile shared "${CC:-cc}" -std=c99 "$example" "${flags[@]}" "-Wl,-rpath,$lib"
# the archive alone, so that the shared library is not used
compile static "${CC:-cc}" -std=c99 "$example" "${flags_static[@]/-lposthoc-ema/$lib/libposthoc-ema.a}"
if command -v c++ >/dev/null; then
    printf '#include <posthoc-ema.h>\nint main() { return !posthoc_ema_version(); }\n' >main.cc
    compile cxx c++ main.cc "${flags[@]}" "-Wl,-rpath,$lib"
    ./cxx || fail "the program in C++ fails"
fi
for way in shared static; do # OpenBLAS is not needed before a large solve
    readelf -d $way "$lib/libposthoc-ema.so" | grep -iE 'blas|lapack|gfortran|cairo' && fail "$way is linked with these"
done
readelf -d static | grep -q 'posthoc-ema' && fail "the static program needs the shared library"

"$phema" gen -q --count 6 --truth 0.1 run >/dev/null
"$phema" synth -q --sigma-rel 0.1 run program.safetensors >/dev/null
# a locale that writes 0,1
localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>/dev/null
for way in shared static; do
    LOCPATH=$work LC_ALL=de_DE.UTF-8 ./$way run 0.1 $way.safetensors >$way.out 2>$way.err ||
        fail "$way: $(cat $way.err)"
    grep -qx "$way.safetensors" $way.out || fail "$way: does not name its output"
    grep -q '^100 % of [0-9]* bytes read$' $way.err || fail "$way: tells no progress"
    "$phema" diff -q program.safetensors $way.safetensors || fail "$way: makes another average"
    "$phema" verify -q $way.safetensors >/dev/null || fail "$way: its output is not what it says of itself"
    ./$way run 0.1 $way.safetensors >/dev/null 2>$way.err
    [ $? = 6 ] || fail "$way: replaces what is there"
done
if [ -e de_DE.UTF-8 ]; then
    grep -qE '[0-9],[0-9]e-' shared.out || fail "the example did not run in a locale that writes 0,1"
else
    echo "library: no locale that writes 0,1 could be made; none was tried"
fi
exit $failed
