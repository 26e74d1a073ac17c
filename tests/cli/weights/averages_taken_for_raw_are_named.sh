# Averages are more alike from time to time than what they are averages of.
list() { # LABEL: of all snapshots in run/
    local separator=''
    echo '{"snapshots":['
    for file in run/*.safetensors; do
        local time=${file#*snapshot-}
        echo "$separator{\"time\":$((10#${time%%-*})),\"file\":\"$file\",$1}"
        separator=,
    done
    echo ']}'
}
labelled() { # OPTION VALUE LABEL [OPTIONS...]
    rm -rf run
    "$phema" gen -q --no-sync --count 16 --params 10000 "${@:4}" "$1" "$2" run >/dev/null
    LC_ALL=C sed -i 's/posthoc_ema\./posthoc_xxx./g' run/*.safetensors
    list "$3" >list.json
    echo "$2 labelled $3:"
    "$phema" weights --json --sigma-rel 0.15 list.json 2>messages | grep -oE '"verdict": "[a-z]*"'
    grep "neighbouring" messages
}
labelled --input-sigma 0.25 '"profile":"raw"'
labelled --input-sigma 0.25 '"sigma_rel":0.05'
labelled --input-profile ema:decay=0.999 '"profile":"raw"'
labelled --input-profile ema:decay=0.999 '"profile":"ema:decay=0.99"'
"$phema" inspect -q list.json | grep alike
# Less than 150 steps apart everything is alike: a training keeps its direction that long.
labelled --input-sigma 0.25 '"profile":"raw"' --steps 2384
labelled --input-sigma 0.25 '"profile":"raw"' --steps 2400
labelled --input-sigma 0.25 '"sigma_rel":0.25'
labelled --input-profile ema:decay=0.999 '"profile":"ema:decay=0.999"'
labelled --input-profile raw '"profile":"raw"'
true
