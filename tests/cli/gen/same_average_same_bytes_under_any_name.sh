# A width, its SPEC and a truth of that width are one average. So are an EMA and the table of its betas,
# and a window over one step and the parameters themselves.
for step in $(seq 64); do echo "$step 0.5"; done >half.txt
"$phema" gen --count 1 --steps 64 --input-sigma 0.1 --truth 0.2 --raw \
    --input-profile ema:half-life=1 --input-profile table:half.txt --input-profile window:1 \
    --input-profile power:0.2 --truth-profile power:0.1 --truth-profile ema:half-life=1 run >/dev/null
same() {
    "$phema" diff -q "run/$1.safetensors" "run/$2.safetensors" && echo "$1 is $2" || echo "$1 is not $2"
}
same snapshot-0000064-0.100 truth/truth-0000064-0.100
same snapshot-0000064-0.200 truth/truth-0000064-0.200
same snapshot-0000064-ema1 truth/truth-0000064-ema1
same snapshot-0000064-ema1 snapshot-0000064-table-half.txt
same snapshot-0000064-window1 snapshot-0000064-raw
same snapshot-0000064-raw snapshot-0000064-ema1
