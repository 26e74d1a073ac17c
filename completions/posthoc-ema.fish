# Completions of posthoc-ema for fish: posthoc-ema help --complete names the words that may follow.
function __posthoc_ema_candidates
    set -l words (commandline -opc)
    set -l program (string replace -r '^~' -- $HOME $words[1])
    set -l word (commandline -ct)
    # Matching is up to fish: the program gets no more of the word than a dash.
    set -l name (string match -r '^--[a-z-]+(?==)' -- $word)
    if set -q name[1]
        set word ''
    end
    $program help --complete $words[2..-1] $name (string match -r '^-?' -- $word) 2>/dev/null
end
function __posthoc_ema_words
    set -l prefix (string match -r '^--[a-z-]+=' -- (commandline -ct))
    for line in (__posthoc_ema_candidates)
        test $line = FILE; or echo -- "$prefix$line"
    end
end
function __posthoc_ema_wants_file
    test "$(__posthoc_ema_candidates)" = FILE
end
complete -c posthoc-ema -f -a '(__posthoc_ema_words)'
complete -c posthoc-ema -n __posthoc_ema_wants_file -F
