# The table of faults and outcomes.
list_units() { list_walks; list_kills; list_places; }

run_unit() { # UNIT, in a directory of its own
    local kind=${1%%/*} place=try/${1//\//_}
    mkdir -p "$place"
    cd "$place" || exit 2
    ln -s ../../in in
    "run_$kind" "$1"
    cd "$work" && rm -rf "$place"
}

titles="
full_stdout|stdout is on a full disk
closed_stdout|stdout is closed
left_pipe|stdout has no reader; SIGPIPE ends the program, or is ignored
directory_removed|the directory of the output is removed while it is written
directory_read_only|the directory of the output may not be written
descriptors|\`ulimit -n\` from 8 to 80
small_disk|a disk of 4 to 800 KiB
two_at_once|a second run with the same output, and the first one behind it
journal_cut|a journal is cut at each byte before its run is resumed
journal_changed|each byte of a journal is changed
journal_gone|a journal is removed
partial_cut|a partial output is cut before its run is resumed
partial_changed|a byte of a partial output is changed
partial_gone|a partial output is removed
snapshot_cut|a snapshot is cut short while it is read or mapped
snapshot_replaced|a snapshot is replaced while it is read or mapped
snapshot_deleted|a snapshot is deleted while it is read or mapped
"

write_rows() { # group, fault: those of results/*.rows, as one row of the table
    awk -v group="$1" -v with="$2" -v title="$3" '
        $1 == group && $2 == with {
            tried += $3
            for (i = 4; i <= NF; i++) { split($i, part, ":"); count[part[1]] += part[2] }
        }
        END {
            if (!tried) exit
            for (s = 0; s < 256; s++)
                if (s in count) text = text (text ? ", " : "") s " (" count[s] ")"
            printf "| %s | %d | %s |\n", title, tried, text
        }' results/*.rows
}

put_table() { # FILE
    local mark='<!-- outcomes -->'
    if ! grep -qxF "$mark" "$1" 2>/dev/null; then
        cp outcomes.md "$1"
        return
    fi
    awk -v mark="$mark" '
        $0 == mark && !is_inside { print; while ((getline line <"outcomes.md") > 0) print line; is_inside = 1; next }
        $0 == mark { is_inside = 0 }
        !is_inside' "$1" >with_table && cp with_table "$1"
}

write_table() {
    local group calls with rest title name
    echo "\`$(sed -E 's/ --table [^ ]+//' <<<"$command")\`: $n_tried attempts, $(wc -l <all_wrong) wrong."
    echo
    echo "| what happens | times | exit statuses |"
    echo "|---|---:|---|"
    # shellcheck disable=SC2016,SC2001 # signs of a table of Markdown
    while IFS='|' read -r group calls with rest title; do
        [ "$group" ] && write_rows "$group" "$with" "$title$([[ $with != *[a-z]* ]] && echo " (${with%+})")"
    done < <(sed 's/`/\\`/g' <<<"$faults")
    while IFS='|' read -r name title; do
        [ "$name" ] && write_rows place "$name" "$title"
    done <<<"$titles"
    for name in $kill_cases; do
        describe_case "$name"
        write_rows random "$name" "\`kill -9\` at random moments: \`$(what_is_written)\`"
    done
}
what_is_written() { echo "${args[*]}" | sed -E 's/^synth -q -j2/synth/; s/^gen -q/gen/'; }
