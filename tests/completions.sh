#!/usr/bin/env bash
# Checks completions in bash, zsh and fish against the program's own help: every verb, every option,
# every word that a value may be, file names for values that are files, and nothing elsewhere.
#   tests/completions.sh PROGRAM
# A shell that is not installed is named and skipped.
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
here=$(cd "$(dirname "$0")/completions" && pwd)
mkdir "$work/in" "$work/bin"
export TMPDIR=$work LC_ALL=C.UTF-8 HOME=$work TERM=dumb
cd "$work/in" || exit 1
touch 'a-file.pt'
verbs=$("$program" --help | sed -nE '/^Verbs/,$s/^  ([a-z]+) .*/\1/p' | grep -vx help)
[ -n "$verbs" ] || fail "the program names no verbs"

sorted() { # words of each line
    LC_ALL=C awk '{
        for (i = 2; i <= NF; i++)
            for (j = i; j > 1 && $j < $(j - 1); j--) { word = $j; $j = $(j - 1); $(j - 1) = word }
        $1 = $1
        print
    }'
}
options() { # "-x --name|VALUE" of a verb, one a line
    "$program" help --all "$1" | sed -e ':again' -e '/|$/{N;s/\n *//;b again' -e '}' | sed -nE \
        -e 's/^  (-.), (--[a-z-]+)( ([^ ]+))?($|  .*)/\1 \2 \4/p' \
        -e 's/^      (--[a-z-]+)( ([^ ]+))?($|  .*)/\1 \3/p' | sed -E 's/ *$//'
}
operands() {
    "$program" "$1" --help | sed -nE 's/^  ([A-Z][A-Z|]*)  .*/\1/p'
}
words_of() { # a placeholder: "auto none" of auto|none|VALUE, "a-file.pt" of FILE
    local part
    for part in ${1//|/ }; do
        case $part in
        FILE | DIR) echo a-file.pt ;;
        [a-z0-9]*) echo "$part" ;;
        esac
    done | sort -u | paste -sd ' '
}

# Command lines, and the expected words for each.
ask() { # expected words, line
    printf '%s\n' "${1//$'\n'/ }" >>"$work/unsorted"
    printf '%s\n' "$2" >>"$work/lines"
}
ask "$verbs help" "posthoc-ema "
ask "synth" "posthoc-ema sy"
ask "--help --version" "posthoc-ema -"
ask "$verbs" "posthoc-ema help "
ask "--all --completions" "posthoc-ema help -"
ask "bash zsh fish" "posthoc-ema help --completions "
ask "profiles weights error memory sweep design" "posthoc-ema plot "
ask "a-file.pt" "posthoc-ema plot profiles a"
ask "a-file.pt" "posthoc-ema plot -o out.svg --metric walk profiles a"
n_values=0
for verb in $verbs; do
    with_values=$(options "$verb")
    ask "$(grep -oE -- '(^| )--?[a-z-]+' <<<"$with_values")" "posthoc-ema $verb -"
    [ "$verb" = plot ] || [ -z "$(operands "$verb")" ] || ask "a-file.pt" "posthoc-ema $verb a"
    while read -r names; do
        value=${names##* }
        [[ $value == -* ]] && continue
        name=$(grep -oE -- '--[a-z-]+' <<<"$names")
        ask "$(words_of "$value")" "posthoc-ema $verb $name "
        n_values=$((n_values + 1))
    done <<<"$with_values"
done
sorted <"$work/unsorted" >"$work/wanted"
[ "$n_values" -gt 100 ] || fail "only $n_values values found in the help of all verbs"

# The scripts ask the program of the command line for candidates. This one runs nothing else.
# shellcheck disable=SC2016 # for that shell to expand
printf '#!/bin/sh\n[ "$1" = help ] && exec "%s" "$@"\necho "$@" >"%s"\n' "$program" "$work/typed" >"$work/bin/posthoc-ema"
chmod +x "$work/bin/posthoc-ema"
PATH=$work/bin:$PATH
for shell in bash zsh fish; do
    "$program" help --completions $shell >"$work/script.$shell" || fail "no script for $shell"
    command -v $shell >/dev/null || {
        echo "completions: $shell is not installed; its script was not tried" >&2
        continue
    }
    options=()
    [ $shell = zsh ] && options=(-f)
    $shell "${options[@]}" "$here/complete.$shell" "$work/script.$shell" <"$work/lines" | sorted >"$work/offered"
    paste -d : "$work/lines" "$work/wanted" >"$work/expected"
    paste -d : "$work/lines" "$work/offered" >"$work/found"
    diff -u --label "expected of $shell" "$work/expected" --label "$shell" "$work/found" >&2 ||
        fail "$shell offers something else"
done

# Readline: TAB completes a command line in an interactive bash, which then runs it.
printf 'source %q\n' "$work/script.bash" >"$work/rc"
printf 'posthoc-ema sy\t--metr\tw\ta-f\t --ridge=n\t\nexit\n' |
    script -qec "bash --noprofile --rcfile $work/rc -i" /dev/null >/dev/null 2>&1
[ "$(cat "$work/typed" 2>/dev/null)" = "synth --metric walk a-file.pt --ridge=none" ] ||
    fail "TAB in bash makes '$(cat "$work/typed" 2>/dev/null)'"
exit $failed
