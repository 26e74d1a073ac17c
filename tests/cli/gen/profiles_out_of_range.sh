exec 2>&1
try() {
    "$phema" gen --steps 64 --count 4 "$@" run
    echo "$?"
}
try --input-profile window:17
try --truth-profile cosine:65
try --truth-profile cosine:20 --truth-at 10
try --truth-at 65
try --truth-at 0.5
try --truth-at 5,5
try --input-profile 'ema:half-life=4 - raw'
try --input-profile sma:4
try --input-profile exponential:4
try --input-profile table:nothing.txt
try --input-profile raw --raw
try --input-sigma 0.1 --input-profile power:0.1
try --truth-profile ema:half-life=4 --truth-profile ema:half-life=4
ls
