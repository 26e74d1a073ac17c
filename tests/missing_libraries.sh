#!/usr/bin/env bash
# CMake names in one line all that it lacks, with the packages of Debian: for pip, which builds from the sdist.
#   tests/missing_libraries.sh SOURCE_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
source=$(readlink -f "$1") || exit 1
says() { # LINE OPTIONS...: the configuration fails with this line
    local line=$1
    shift
    cmake -S "$source" -B "$work/build" "$@" >"$work/said" 2>&1 && fail "$*: no failure"
    grep -qxF "   $line" "$work/said" || {
        fail "$*: expected: $line"
        cat "$work/said" >&2
    }
    rm -rf "$work/build"
}
packages=$(sed -n '/^set(PHEMA_PACKAGES/,/)/p' "$source/cmake/require.cmake" | tr -s '() \n' ' ' | sed 's/ *set PHEMA_PACKAGES //; s/ $//')
end="; Debian and Ubuntu have all that is needed: apt-get install $packages"
export PKG_CONFIG_LIBDIR=$work
says "missing: zlib, jansson, libpcre2-8, mpfr, cairo, libzstd, libxxhash$end"
says "missing: pkg-config, zlib, jansson, libpcre2-8, mpfr, cairo, libzstd, libxxhash$end" -DPKG_CONFIG_EXECUTABLE=
unset CC
says "missing: a C compiler$end" -DPHEMA_C_COMPILER=
for package in $packages; do
    sed -n '/^build=(/,/)/p' "$source/scripts/setup" | grep -qw -- "$package" ||
        fail "scripts/setup does not install $package"
done
exit "$failed"
