#compdef posthoc-ema
# Completions of posthoc-ema for zsh: posthoc-ema help --complete names the words that may follow.
_posthoc_ema() {
    local line program=${(Q)words[1]/#\~/$HOME}
    local -a before=("${(@Q)words[2,CURRENT-1]}") names=(${words[2,CURRENT-1]%%=*})
    local -a lines given offered
    if [[ $PREFIX == --*=* ]]; then
        before+=("${PREFIX%%=*}")
        compset -P 1 '*='
    fi
    # Matching is up to zsh: the program gets no more of the word than a dash.
    lines=("${(@f)$("$program" help --complete "${before[@]}" "${(M)PREFIX#-}" 2>/dev/null)}")
    if [[ $lines == '' && $PREFIX == '' ]]; then # no operand may follow, but options
        lines=("${(@f)$("$program" help --complete "${before[@]}" - 2>/dev/null)}")
    fi
    if [[ $lines == FILE ]]; then
        _files
        return
    fi
    # Given options are not offered again, nor their other names, which have the same description.
    for line in $lines; do
        [[ $line != *repeatable* && -n ${names[(re)${line%%$'\t'*}]} ]] && given+=("${line#*$'\t'}")
    done
    for line in $lines; do
        [[ $line == *$'\t'* && -n ${given[(re)${line#*$'\t'}]} ]] && continue
        offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe ${${(M)PREFIX#-}:+-o} word offered
}
if [[ $funcstack[1] == _posthoc-ema ]]; then
    _posthoc_ema "$@"
else
    compdef _posthoc_ema posthoc-ema
fi
