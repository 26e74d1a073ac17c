#!/usr/bin/env bash
# Runs the console blocks of a document, in their order, in an empty directory with fixtures/ and
# examples/, as in a clone. Lines that begin with "$ " are commands, which a backslash continues; the
# other lines are their output, both streams. Values that depend on the machine are masked: seconds,
# rates, memory, sizes on disk that depend on them.
#   tests/docs.sh PROGRAM SHARED FILE.md [--bless]
# SHARED contains fixtures/ and examples/; --bless writes the new output into the document.
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
shared=$(readlink -f "$2") || exit 1
file=$(readlink -f "$3") || exit 1
bless=${4:-}
mkdir "$work/in"
call_it "$program"
ln -s "$shared/fixtures" "$shared/examples" "$work/in"
export LC_ALL=C.UTF-8 TERM=dumb NO_COLOR=1
unset COLUMNS

mask() {
    sed -E -e 's/[0-9.]+ (m?s)([ :,;)]|$)/N \1\2/g' \
        -e 's/, [0-9.]+ (B|[KMGT]i?B)\/s//g' -e 's/[0-9.]+ (B|[KMGT]i?B)\/s/N B\/s/g' \
        -e 's/resident [0-9.]+ ([KMG]i)?B/resident N/g' -e 's/[0-9.]+ ([KMG]i)?B memory/N memory/g' "$1"
}

# Runs everything in one shell, so that directories and variables persist; prints the document with the
# new output.
cd "$work/in" || exit 1
command='' is_console=''
exec 3>"$work/found"
say() { printf '%s\n' "$1" >&3; }
while IFS= read -r line || [ -n "$line" ]; do
    if [ "$line" = '```console' ]; then
        is_console=1
        say "$line"
    elif [ "$line" = '```' ]; then
        is_console=''
        say "$line"
    elif [ -z "$is_console" ]; then
        say "$line"
    elif [[ $line = '$ '* || -n $command ]]; then
        say "$line"
        [ -n "$command" ] && command+=$'\n'$line || command=${line#'$ '}
        [[ $line = *\\ ]] && continue
        eval "$command" >"$work/printed" 2>&1 </dev/null 3>&-
        sed -E '/^ *[0-9]+ %  |^[a-z ]+, [0-9]+ s$/d' "$work/printed" >&3 # progress, on a slow machine
        command=''
    fi
done <"$file"
exec 3>&-

# Pictures of the document are those that its commands draw.
for picture in *.svg; do
    shown=$(dirname "$file")/docs/$picture
    [ -e "$shown" ] || continue
    if [ "$bless" = --bless ]; then
        cp "$picture" "$shown"
    else
        cmp "$picture" "$shown" || failed=1
    fi
done

if [ "$bless" = --bless ]; then
    cat "$work/found" >"$file"
    exit 0
fi
grep -q '^\$ posthoc-ema' "$file" || fail "$file shows no commands"
diff -u --label "$(basename "$file")" <(mask "$file") --label printed <(mask "$work/found") || failed=1
exit $failed
