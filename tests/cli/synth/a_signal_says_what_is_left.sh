# A run that a signal ends says what is left: nothing, or with --resume the command that continues it; a quiet run
# says nothing. The bar names what follows the sums, with the number of the output.
"$phema" gen -q --count 2 --steps 64 --no-sync run >/dev/null
faults="env --default-signal=TERM LD_PRELOAD=$(dirname "$phema")/tests/libfaults.so"
ended() { # command: ended by a signal when it first writes below out/
    $faults FAULT_PATH=out/ FAULT_AT=1 FAULT_CALLS=pwrite FAULT_WITH=TERM "$phema" "$@" 2>&1 | grep -a '^stopped' |
        sed 's/([0-9]* % done)/(N % done)/'
    echo "status ${PIPESTATUS[0]}"
}
mkdir out
ended synth --sigma-rel 0.07 run out/a.safetensors
ended synth -q --sigma-rel 0.07 run out/a.safetensors
ended synth --sigma-rel 0.07 --resume run out/a.safetensors | sed 's/ (N % done)//'
ended gen out/
ls out
rm -rf out
echo "- stages"
# shellcheck disable=SC2086 # the shim is several words
slowly() { # columns, ms, command: each write and fsync below out/ takes so long; with FAULT_SHOWN until it was shown
    at_columns "$1" $faults FAULT_PATH=out/ FAULT_CALLS=pwrite,fsync FAULT_PAUSE="$2" "$phema" "${@:3}" >all
    tr '\r' '\n' <all | sed 's/ *$//' >shown
    [ "$(LC_ALL=C.UTF-8 wc -L <shown)" -le "$1" ] || cat shown
    grep -oE '^(simulating|(compressing|storing) [0-9]/[0-9])' shown | sort -u
}
FAULT_SHOWN=$PWD/all slowly 60 2000 synth --no-color --sigma-rel 0.07,0.15 run 'out/{sigma}.safetensors.zst'
rm -rf out
slowly 140 300 gen --count 1 out
