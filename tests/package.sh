#!/usr/bin/env bash
# Builds the Debian packages, installs them into a separate tree, tries them there and removes them;
# nothing is left. Packages that they depend on must be installed on this machine.
#   tests/package.sh BUILD_DIR
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
build=$(readlink -f "$1") || exit 1
tests=$(cd "$(dirname "$0")" && pwd)
for tool in cpack:cmake dpkg:dpkg dpkg-shlibdeps:dpkg-dev file:file; do
    command -v ${tool%:*} >/dev/null || {
        echo "skipped: no ${tool%:*}; to run it: apt-get install ${tool#*:}" >&2
        exit 77
    }
done
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v fakeroot >/dev/null || {
        echo "skipped: dpkg needs root or fakeroot; to run it: apt-get install fakeroot" >&2
        exit 77
    }
    as_root=(fakeroot)
fi
mkdir "$work/in"
cd "$work/in" || exit 1

cpack -G DEB -B "$work/packages" --config "$build/CPackConfig.cmake" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    fail "cpack fails"
    exit 1
}
rm -rf "$work/packages/_CPack_Packages"
packages=("$work"/packages/*.deb)
names=$(for package in "${packages[@]}"; do dpkg-deb -f "$package" Package; done)
wanted="posthoc-ema"
[ -e "$build/libposthoc-ema.a" ] && wanted+=" libposthoc-ema-dev libposthoc-ema[0-9.]+"
grep -q 'COMPONENT.*cuda\|"cuda"' "$build/cmake_install.cmake" && wanted+=" posthoc-ema-cuda"
for library in openmpi mpich; do
    [ -e "$build/posthoc-ema-mpi.$library" ] && wanted+=" posthoc-ema-$library"
done
for name in $wanted; do
    grep -qxE "$name" <<<"$names" || fail "there is no package $name among: $names"
done

for package in "${packages[@]}"; do # what apt show prints
    dpkg-deb -f "$package" >"$work/fields"
    grep -qE '^Maintainer: .+ <[^ <>@]+@[^ <>@]+>$' "$work/fields" || fail "$package: $(grep ^Maintainer "$work/fields")"
    ! grep -q '\.invalid' "$work/fields" || fail "$package: $(grep -F .invalid "$work/fields")"
    grep -q '^Homepage: https://' "$work/fields" || fail "$package has no homepage"
    synopsis=$(sed -n 's/^Description: //p' "$work/fields")
    [ "$(grep -cF -- "${synopsis%% - *}" "$work/fields")" = 1 ] || fail "$package has its synopsis twice"
    ! sed '1,/^Description/d' "$work/fields" | grep -E '^  ' >&2 || fail "$package: lines of its description are not wrapped"
done
root=$work/root
admin=$root/var/lib/dpkg
mkdir -p "$admin/info" "$admin/updates" "$admin/triggers" "$admin/alternatives" "$root/etc/alternatives"
cp /var/lib/dpkg/status "$admin/status"
: >"$admin/available"
# The packages' scripts call ldconfig, which must use the tree, not this machine.
mkdir "$work/tools"
printf '#!/bin/sh\nexec /sbin/ldconfig -X -C "%s" "%s"\n' "$work/ld.so.cache" "$root/usr/lib" >"$work/tools/ldconfig"
chmod +x "$work/tools/ldconfig"
dpkg_in_root() {
    "${as_root[@]}" env PATH="$work/tools:$PATH:/usr/sbin:/sbin" dpkg --root="$root" --log=/dev/null \
        --force-script-chrootless --path-include='*' "$@" >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "dpkg $1 fails"
    }
}
files() { # without the records and the log of dpkg
    (cd "$root" && find . \( -path ./var/lib/dpkg -o -path ./var/log \) -prune -o -print | sort)
}
before=$(files)
dpkg_in_root --install "${packages[@]}"

# As after a fresh installation.
export PATH=$root/usr/bin:$PATH LC_ALL=C.UTF-8
[ "$(command -v posthoc-ema)" = "$root/usr/bin/posthoc-ema" ] || fail "the program is not in usr/bin"
{
    posthoc-ema gen -q --truth 0.1 run && posthoc-ema synth -q --sigma-rel 0.1 run out.safetensors &&
        posthoc-ema diff -q --tolerance 0.01 out.safetensors run/truth/*.safetensors
} >/dev/null || fail "the installed program makes no average"
[ -e "$root/usr/share/man/man7/posthoc-ema-spec.7" ] || fail "no page of SPEC in the manual"
for verb in $(posthoc-ema --help | sed -nE '/^Verbs/,$s/^  ([a-z]+) .*/\1/p' | grep -vx help); do
    [ -e "$root/usr/share/man/man1/posthoc-ema-$verb.1" ] || fail "no page of $verb in the manual"
done
for file in bash-completion/completions/posthoc-ema zsh/vendor-completions/_posthoc-ema \
    fish/vendor_completions.d/posthoc-ema.fish doc/posthoc-ema/README.md doc/posthoc-ema/copyright; do
    [ -s "$root/usr/share/$file" ] || fail "no usr/share/$file"
done
# The name posthoc-ema-mpi is that of Open MPI's program, if both are there. One process is posthoc-ema.
first=mpich
[[ " $wanted " = *" posthoc-ema-openmpi "* ]] && first=openmpi
for library in mpich openmpi; do
    [[ " $wanted " = *" posthoc-ema-$library "* ]] || continue
    [ "$(readlink "$root/etc/alternatives/posthoc-ema-mpi")" = "/usr/bin/posthoc-ema-mpi.$first" ] || fail "$(ls -l "$root/etc/alternatives")"
    [ -L "$root/usr/bin/posthoc-ema-mpi" ] || fail "there is no posthoc-ema-mpi"
    posthoc-ema-mpi.$library verify out.safetensors >/dev/null || fail "posthoc-ema-mpi.$library does not run"
    readelf -d "$root/usr/bin/posthoc-ema-mpi.$library" | grep -q "NEEDED.*lib\(mpi\.\|$library\)" || fail "posthoc-ema-mpi.$library is for another library"
done
shared=$root/usr/share/doc/posthoc-ema
"$tests/docs.sh" "$root/usr/bin/posthoc-ema" "$shared" "$shared/README.md" >&2 ||
    fail "the README shows something else than the installed program prints"
cmp "$tests/../docs/guide.md" "$shared/docs/guide.md" || fail "another guide is installed"
"$tests/examples.sh" "$root/usr/bin/posthoc-ema" "$shared/examples" || fail "the installed examples fail"
mapfile -t binaries < <(find "$root/usr" -type f \( -path '*/bin/*' -o -name '*.so*' \))
search_paths_are_absolute "${binaries[@]}"
for package in "${packages[@]}"; do # libraries loaded on demand are unknown to the linker
    case $(dpkg-deb -f "$package" Package) in
    posthoc-ema) needs="libopenblas0 libcairo2 libc6 libmpfr6" ;;
    libposthoc-ema[0-9]*) needs="libopenblas0 libc6 libmpfr6" ;;
    *) needs= ;;
    esac
    for needed in $needs; do
        dpkg-deb -f "$package" Depends | tr ',' '\n' | grep -qE "^ *$needed( |$)" ||
            fail "$package does not depend on $needed"
    done
done
for package in "${packages[@]}"; do
    dpkg-deb -f "$package" Depends | grep -q . || fail "$package depends on nothing"
    dpkg-deb -c "$package" | awk '$2 != "root/root" { bad = 1 } END { exit bad }' ||
        fail "$package has files that are not root's"
done

mapfile -t names <<<"$names"
dpkg_in_root --purge "${names[@]}"
diff -u --label before <(echo "$before") --label after <(files) >&2 || fail "files are left"
grep -lE '^Package: (lib)?posthoc-ema' "$admin/status" && fail "packages are left"
exit $failed
