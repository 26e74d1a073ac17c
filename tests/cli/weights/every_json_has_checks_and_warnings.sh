# Every verb that opens a series, on one whose labels are wrong.
"$phema" gen -q --count 16 --params 2K --input-sigma 0.05,0.28 --update-every 10 --hide-update-every run >/dev/null
keys() { # verb and options
    "$phema" "$@" --json -q run >result.json 2>/dev/null || echo "status $?"
    tr -d '\n ' <result.json |
        sed -E "s/.*\"checks\":\{\"verdict\":\"([a-z]*)\".*\"warnings\":\[\"([^,:]*).*/$1: \1; \2/"
    echo
}
keys weights --sigma-rel 0.1
keys plan --sigma-rel 0.1
keys inspect
keys plot error -o error.svg
keys plot weights --sigma-rel 0.1 -o weights.svg
keys report -o page.html
keys report --sigma-rel 0.1 -o other.html
keys search --checks warn --sigma-rel 0.05,0.1 --tolerance 0.5 --evaluations 3 --exec 'wc -c {}' --score-regex '[0-9]+'
"$phema" synth -q --no-sync --json --sigma-rel 0.1 run out.safetensors 2>/dev/null | grep -e '"verdict"' -e 'do not fit' | cut -c -70
"$phema" verify --json out.safetensors | grep -e '"recorded_checks"' -e '"warnings"'
"$phema" design -q --json --until 8192 --model 8K --disk 1M --sigma-rel 0.1 --like run 2>/dev/null |
    grep -e '"verdict"' -e 'do not fit' | cut -c -70
