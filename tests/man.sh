#!/usr/bin/env bash
# Checks the manual against the program. Every verb has a page. Options and operands in help --all VERB
# and in its page are the same, with the same values. References lead to pages. The commands under
# EXAMPLES run, in their order, in an empty directory, and fit into 80 columns. A verb's EXAMPLES come
# before its OPTIONS, each kind of SPEC has one, and synth's page is short. mandoc and groff have no
# warnings.
#   tests/man.sh PROGRAM MANDIR
# Commands are the lines of literal displays that begin with "$ "; other lines continue the command
# before. A display whose first line has no "$ " needs files that the tests lack, and is not run.
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
program=$(readlink -f "$1") || exit 1
pages=$(cd "$2" && pwd) || exit 1
call_it "$program"
export LC_ALL=C

options_of_help() { # "--name VALUE", "-x --name VALUE" or "OPERAND", one a line
    posthoc-ema help --all "$1" | sed -e ':again' -e '/|$/{N;s/\n *//;b again' -e '}' | sed -nE \
        -e 's/^  (-.), (--[a-z-]+)( ([^ ]+))?($|  .*)/\1 \2 \4/p' \
        -e 's/^      (--[a-z-]+)( ([^ ]+))?($|  .*)/\1 \3/p' \
        -e 's/^  ([A-Z][A-Z|]*)  .*/\1/p' | sed 's/ *$//' | sort
}

options_of_page() {
    sed -n '/^\.Sh OPTIONS/,/^\.Sh [^O]/p' "$1" | sed 's/\\://g' | sed -nE \
        -e 's/^\.It Fl ([a-z]) , (-[a-z-]+)( Ar (.*))?$/-\1 -\2 \4/p' \
        -e 's/^\.It Fl (-[a-z-]+)( Ar (.*))?$/-\1 \3/p' \
        -e 's/^\.It Ar ([A-Z|]+)$/\1/p' | sed 's/ *$//' | sort
}

commands_of_page() {
    sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/p' "$1" |
        awk '/^\.Bd -literal/ { getline; is_run = /^\$ / } /^\.Ed/ { is_run = 0 } is_run' |
        sed -e 's/^\$ //' -e 's/\\e/\\/g' -e 's/\\-/-/g'
}

run_examples() {
    local name=$1
    commands_of_page "$2" >"$work/$name.sh"
    [ -s "$work/$name.sh" ] || fail "$2: has no EXAMPLES that run"
    mkdir "$work/$name"
    (cd "$work/$name" && bash -e -o pipefail -x "$work/$name.sh") >"$work/log" 2>&1 </dev/null && return
    fail "$2: an example fails:"
    tail -n 5 "$work/log" >&2
}

verbs=$(posthoc-ema --help | sed -nE '/^Verbs/,$s/^  ([a-z]+) .*/\1/p' | grep -vx help)
[ -n "$verbs" ] || fail "the program names no verbs"
for verb in $verbs; do
    page=$pages/posthoc-ema-$verb.1
    [ -e "$page" ] || {
        fail "posthoc-ema-$verb.1 is missing"
        continue
    }
    grep -qxF ".Nd $(posthoc-ema "$verb" --help | sed -n 3p)" "$page" ||
        fail "posthoc-ema-$verb.1: .Nd differs from the one line of posthoc-ema $verb --help"
    [ -n "$(options_of_help "$verb")" ] || fail "$verb: no options found in its help"
    diff -u --label "help --all $verb" --label "posthoc-ema-$verb.1" \
        <(options_of_help "$verb") <(options_of_page "$page") >&2 ||
        fail "posthoc-ema-$verb.1: options differ from those of posthoc-ema help --all $verb"
    grep -qx "\.Xr posthoc-ema-$verb 1 [.,]" "$pages/posthoc-ema.1" ||
        fail "posthoc-ema.1: does not refer to posthoc-ema-$verb"
    sed -n '/^\.Sh SYNOPSIS/,/^\.Sh D/p' "$pages/posthoc-ema.1" | grep -qxF ".Cm $verb" ||
        fail "posthoc-ema.1: its SYNOPSIS lacks $verb"
    [ "$(grep -E '^\.Sh (EXAMPLES|OPTIONS)' "$page" | head -n 1)" = ".Sh EXAMPLES" ] ||
        fail "posthoc-ema-$verb.1: EXAMPLES come after OPTIONS"
done
diff <(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh D/s/^\.Cm //p' "$pages/posthoc-ema.1" | grep -vxF help) <(echo "$verbs") >&2 ||
    fail "posthoc-ema.1: its SYNOPSIS has the verbs in another order than posthoc-ema --help"
diff <(sed -n '/^The verbs, those/,/^\.El/s/^\.It Cm //p' "$pages/posthoc-ema.1" | grep -vxF help) <(echo "$verbs") >&2 ||
    fail "posthoc-ema.1: describes the verbs in another order than posthoc-ema --help"

kinds=$(posthoc-ema weights --input-profile nosuch --sigma-rel 0.1 nosuch 2>&1 | sed -n 's/.*known are //p' | tr -d ,)
[ "$(wc -w <<<"$kinds")" -gt 30 ] || fail "the program names no kinds of SPEC"
for kind in $kinds; do
    commands_of_page "$pages/posthoc-ema-spec.7" | grep -qE -- "--(input-)?profile $kind(:| |\$)" ||
        fail "posthoc-ema-spec.7: has no example of $kind"
done

for page in "$pages"/*.[17]; do
    name=$(basename "${page%.*}")
    verb=${name#posthoc-ema}
    is_other=false # another program, whose examples need a launcher, or no verb
    [[ $page == *-mpi.1 || $page == *.7 ]] && is_other=true
    $is_other || grep -qx -- "${verb#-}" <<<"$verbs"$'\n' || fail "$name.1: the program has no such verb"
    while read -r other; do
        [ -e "$pages/$other" ] || fail "$page: refers to $other, which is missing"
    done < <(sed -nE 's/^\.Xr (posthoc-ema[a-z-]*) ([0-9]).*/\1.\2/p' "$page")
    [ -z "$(commands_of_page "$page")" ] || is_other=false
    $is_other || run_examples "$name" "$page"
done

# A literal display is indented by 11 columns.
too_wide=$(awk '/^\.Bd -literal/ { is_literal = 1 } /^\.Ed/ { is_literal = 0 }
    is_literal { gsub(/\\e/, "\\"); if (length > 69) print FILENAME ":" FNR }' "$pages"/*.[17])
[ -z "$too_wide" ] || fail "wider than 80 columns: $too_wide"

version=$(posthoc-ema --version)
for page in "$pages"/*.[17]; do
    grep -qxF ".Os \"$version\"" "$page" || fail "$(basename "$page"): is not of $version"
done

if command -v mandoc >/dev/null; then
    # Examples stand before options, since readers look for them first.
    warnings=$(mandoc -T lint -W warning "$pages"/*.[17] | grep -v 'sections out of conventional order')
    [ -z "$warnings" ] || fail "mandoc finds fault with the pages: $warnings"
else
    echo "man: mandoc is not installed; the pages were not linted"
fi
if command -v groff >/dev/null; then # as man -l formats them, 80 columns wide
    for page in "$pages"/*.[17]; do
        warnings=$(groff -Tutf8 -mdoc -rLL=80n -rLT=80n "$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || fail "$(basename "$page"): $warnings"
    done
    # as man does where a terminal has 80 columns
    n_lines=$(groff -Tutf8 -mdoc -rLL=78n -rLT=78n "$pages/posthoc-ema-synth.1" | wc -l)
    [ "$n_lines" -le 500 ] || fail "posthoc-ema-synth.1: has $n_lines lines at 80 columns; 500 are what one looks through"
else
    echo "man: groff is not installed; its warnings were not looked at"
fi
exit $failed
