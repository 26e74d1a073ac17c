# What cannot be planned is refused with one sentence, and with a value that would do.
ask() {
    echo "- $*"
    "$phema" design -q "$@"
    echo "status $?"
}
good="--until 100k --model 400M"
# shellcheck disable=SC2086 # options are several words
{
    ask
    ask --until 0 --model 400M --disk 10G --sigma-rel 0.1
    ask --until 100k --disk 10G --sigma-rel 0.1
    ask $good --sigma-rel 0.1
    ask $good --disk 10G
    ask $good --disk 100M --sigma-rel 0.1
    ask $good --disk 1G --sigma-rel 0.1 --at 10k:90k:10k
    ask $good --disk 10G --sigma-rel 0.05:0.35
    ask $good --disk 10G --sigma-rel 0.3
    ask $good --disk 10G --sigma-rel 0.2:0.1
    ask $good --disk 10G --sigma-rel 0.1 --at 200k
    ask $good --disk 10G --sigma-rel 0.1 --at 0.5
    ask $good --disk 10G --sigma-rel 0.1 --after 100k
    ask $good --disk 10G --profile table:no.csv
    ask $good --disk 10G --profile window:200k
    ask $good --disk 10G --profile window:20k --after 50k
    ask $good --disk 10G --profile 'raw - ema:2000'
    ask $good --disk 10G --profile raw
    ask $good --disk 10G --sigma-rel 0.1 --trainer ema-pytorch --max-widths 1
    ask $good --disk 10G --sigma-rel 0.1 --trainer lightning --input-sigma 0.05,0.1
    ask $good --disk 10G --sigma-rel 0.1 --trainer posthoc-ema --input-sigma 0.02,0.03,0.05,0.1,0.2
    ask --until 102400 --model 400M --disk 10G --sigma-rel 0.1 --trainer edm2 --unit kimg
    ask --until 102400 --model 400M --disk 10G --sigma-rel 0.1 --trainer edm2 --input-sigma 0.0125
    ask --until 102400 --model 400M --disk 300M --sigma-rel 0.1 --trainer edm2
    ask $good --disk 10G --sigma-rel 0.1 --trainer megatron
    ask $good --disk 10G --sigma-rel nan
    ask --until 100k --model 5000T --model-dtype f16 --disk 10G --sigma-rel 0.1
    ask $good --disk 10G --sigma-rel 0.1 --trainer edm2 --dtype f32
    ask $good --disk 10G --sigma-rel 0.1 --trainer edm2
    ask --until 99991 --model 400M --disk 10G --sigma-rel 0.1 --trainer posthoc-ema
    ask $good --sigma-rel 0.1 --max-error 0
    ask $good --disk 10G --sigma-rel 0.1 --raw-every 0
    ask $good --disk 10G --sigma-rel 0.1 --raw-every 1
    ask $good --disk 10G --sigma-rel 0.1 --raw-every 5k --trainer torchtitan
    ask --until 100k --model no.safetensors --disk 10G --sigma-rel 0.1
    ask --until 100k --model 2B --disk 10G --sigma-rel 0.1
    ask $good --params 2.6B --disk 10G --sigma-rel 0.1
    ask --until 100k --params 5000T --disk 10G --sigma-rel 0.1
    ask --until 100k --params 2.6GB --disk 10G --sigma-rel 0.1
    ask --until 100k --params 2.6B --disk 10G --sigma-rel 0.1 --trainer torchtitan --unit tokens
} 2>&1
echo "- an error that is out of reach: the choices are printed"
# shellcheck disable=SC2086 # options are several words
"$phema" design -q $good --sigma-rel 0.05,0.1 --disk 2G --max-error 1e-9 >out 2>&1
echo "status $?"
grep -c '^the same disk otherwise' out
tail -n 1 out | sed -E 's/[0-9.]+e-[0-9]+,/N,/'
echo "- a file that exists"
touch design.json
# shellcheck disable=SC2086 # options are several words
"$phema" design -q $good --sigma-rel 0.05,0.1 --disk 2G -o design.json 2>&1
echo "status $?"
