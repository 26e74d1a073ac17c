# Completions of posthoc-ema for bash: posthoc-ema help --complete names the words that may follow.
_posthoc_ema() {
    local word words=() cur=${COMP_WORDS[COMP_CWORD]}
    # Bash parts words at '=': --metric=walk is three of them.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        [ "$word" = = ] || words+=("$word")
    done
    if [ "$cur" = = ]; then
        cur=''
        words+=('')
    fi
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]/#\~/$HOME}" help --complete "${words[@]}" 2>/dev/null)
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}") # without descriptions
    if [ "${COMPREPLY[*]}" = FILE ]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -F _posthoc_ema posthoc-ema
