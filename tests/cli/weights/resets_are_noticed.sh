# Averages were reset, and no label tells: the program says where and how, and is content once it is told.
check() { # T, SUFFIX, OPTIONS of gen
    rm -rf run
    "$phema" gen -q --no-sync --count 16 --reset-at "$1$2" "${@:3}" run >/dev/null
    "$phema" weights --sigma-rel 0.15 run 2>&1 >/dev/null |
        sed -n 's/^warning: the snapshots do not fit their labels: the averages were reset near \([0-9]*\); if that is so, give --reset-at \([0-9]*\)\(.*\); the error is unknown/\1 \2 \3/p' |
        awk -v at="$1" '{ print at, ($1 == $2 && $1 > at - 16 && $1 < at + 16 ? "found" : "but " $1), $3 }'
    "$phema" weights -q --json --reset-at "$1$2" --sigma-rel 0.15 run | grep -oE '"verdict": "[a-z]*"'
}
check 2600 ''
check 2560 '' --seed 1
check 2700 ,counter
check 1000 ,counter --seed 2 --dtype bf16
check 3333 ,counter --update-every 10
