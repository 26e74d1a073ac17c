# The training was resumed without its averages, and nothing in the files says so. With --reset-at the error is that of
# the best weights there are, which least squares over all parameters gave once (numpy), here with the truth at hand.
error_of() { # OPTIONS of synth
    "$phema" synth -q --force --no-sync --sigma-rel 0.15 "$@" run out.safetensors >/dev/null 2>&1
    "$phema" diff --json out.safetensors run/truth/*.safetensors | sed -n 's/^ "rel_l2": \(.*\),$/\1/p'
}
check() { # LEAST ERROR, OPTIONS of both
    rm -rf run
    "$phema" gen -q --no-sync --count 16 --truth 0.15 --truth-dtype f64 "${@:2}" run >/dev/null
    right=$(error_of "${@:2}")
    wrong=$(error_of --checks off)
    awk -v name="${*:2}" -v least="$1" -v right="$right" -v wrong="$wrong" 'BEGIN {
        print name ":" (right < 1.02 * least ? " good" : " bad: " right) (wrong > 10 * right ? "" : ", but " wrong)
    }'
}
check 1.76e-4 --reset-at 1000,counter
check 2.74e-4 --reset-at 2600
check 1.42e-3 --reset-at 3000 --reset-at 1000,counter
check 8.25e-4 --reset-at 3333,counter --update-every 10
check 8.42e-4 --reset-at 2600 --update-every 10

# A provenance tells it, and another reset is another average.
"$phema" gen -q --no-sync --force --count 16 --reset-at 2600,counter run >/dev/null
"$phema" synth -q --no-sync --reset-at 2600,counter --sigma-rel 0.15 run a.safetensors
"$phema" verify -q a.safetensors && echo "verified"
"$phema" synth -q --no-sync --skip-existing --reset-at 2600,counter --sigma-rel 0.15 run a.safetensors && echo "kept"
"$phema" synth -q --no-sync --skip-existing --reset-at 2600 --sigma-rel 0.15 run a.safetensors
echo "status $?"
"$phema" weights -q --json --reset-at 2600,counter --sigma-rel 0.15 run | grep -c '"reset_at": 2600, "counted_from": 2600'
"$phema" weights -q --json --reset-at 2560 --sigma-rel 0.15 run 2>/dev/null | grep '"reset_at": 2560}' | grep -o '^.*"time": [0-9]*' | head -1
