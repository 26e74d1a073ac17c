#!/usr/bin/env bash
# What the developers' pages say of the sources is so: the diagram of modules, the tables of folders, the
# functions of a run with their files.
#   tests/architecture.sh ROOT
set -u
# shellcheck source=support/script.sh
. "$(dirname "$0")/support/script.sh"
cd "$1" || exit 1
page=docs/architecture.md

# the diagram has the edges of phema_add_module
built=$(sed -nE 's/^phema_add_module\(([a-z]+) DEPENDS ([a-z ]*[a-z]).*/\1 \2/p' CMakeLists.txt |
    sed 's/ LIBRARIES.*//' | awk '{ for (i = 2; i <= NF; i++) print $1 " --> " $i }' | sort)
drawn=$(sed -nE 's/^ +([a-z]+ --> [a-z]+)$/\1/p' $page | sort)
[ -n "$built" ] || fail "CMakeLists.txt: no modules were found"
[ "$built" = "$drawn" ] || fail "$page: the diagram is not that of CMakeLists.txt:
$(diff <(echo "$built") <(echo "$drawn"))"

# each module is a row of both tables, and has a page
for directory in src/*/; do
    module=$(basename "$directory")
    grep -q "^| \`$module\` |" $page || fail "$page has no row of the module $module"
    grep -q "^| \`$module/\` |" src/README.md || fail "src/README.md has no row of $module/"
done
while IFS= read -r directory; do
    [ -e "$directory/README.md" ] || fail "$directory has no README.md"
done < <(find src -type d)

# a step names a function and the file that defines it
steps=0
# shellcheck disable=SC2016 # backticks of markdown
while read -r function file; do
    steps=$((steps + 1))
    grep -qE "^[a-zA-Z].*\b$function\(" "$file" 2>/dev/null || fail "$page: $file does not define $function()"
done < <(tr '\n' ' ' <$page | grep -oE '`[a-z_]+\(\)` in `[a-z_/.]+`' | sed -E 's/`([a-z_]+)\(\)` in `(.*)`/\1 \2/')
[ $steps -eq 12 ] || fail "$page: expected 12 steps with a function and a file, found $steps"

# every file that a page names exists
while read -r file; do
    [ -e "$file" ] || fail "a page names $file, which is not there"
done < <(grep -ohE '\b(src|include|tests|cmake|scripts|bench|docs)/[a-zA-Z0-9_/-]+\.(c|h|md|sh|inc|cu|cmake|py|txt|list)\b' \
    README.md CONTRIBUTING.md SECURITY.md docs/*.md docs/formats/*.md src/README.md | grep -v TARGET | sort -u)

# the former vocabulary stays away
grep -rnwiE 'r[o]oms?|d[o]ors?|h[o]use' src include cmake docs tests --exclude-dir=seeds &&
    fail "a word of the former vocabulary"
exit $failed
