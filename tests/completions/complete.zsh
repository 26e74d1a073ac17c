#!/usr/bin/env zsh
# Prints the completions of zsh for command lines: types each line and a TAB into one interactive zsh.
# compadd, which every completion calls, records the words.
#   zsh -f tests/completions/complete.zsh SCRIPT <LINES     a line of words, sorted, for each
zmodload zsh/zpty
typeset dump=${TMPDIR:-/tmp}/zcompdump.$$ answer
cat >$dump.rc <<'END'
PROMPT= RPROMPT=
autoload -U compinit
END
print "compinit -u -d $dump" >>$dump.rc
print "source ${(q)1}" >>$dump.rc
cat >>$dump.rc <<'END'
bindkey '^I' complete-word
zstyle ':completion:*' list-grouped false
zstyle ':completion:*' insert-tab false
typeset -ga seen
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return $?
    fi
    typeset -a hits
    builtin compadd -A hits "$@"
    seen+=($hits)
    builtin compadd "$@"
}
begin() { seen=() }
finish() {
    print -r -- "<<<${(ou)seen}>>>"
    compstate[insert]= compstate[list]=
    record
}
record() { # the next completion, which empties both lists
    compprefuncs=(begin)
    comppostfuncs=(finish)
}
record
END
zpty shell zsh -f -i
zpty -w shell "source $dump.rc; print started\$((1))"
zpty -r shell answer $'*started1*' || exit 2
while IFS= read -r line; do
    zpty -w -n shell $'\C-u'"$line"$'\t'
    zpty -r shell answer $'*<<<*>>>*' || exit 2
    answer=${answer#*<<<}
    print -r -- ${answer%%>>>*}
done
zpty -d shell
rm -f $dump $dump.rc
