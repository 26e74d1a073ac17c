# --quiet leaves out the summary, the progress and notes. What may make the result another one than was asked
# for is said all the same, once, and is in the JSON.
"$phema" gen -q --count 16 --params 2K --input-sigma 0.05,0.28 --update-every 10 --hide-update-every bad >/dev/null
"$phema" gen -q --count 16 --params 2K good >/dev/null
show() { # what, options of synth
    echo "- $1"
    shift
    "$phema" synth --no-sync -f -q --json "$@" >result.json 2>errors
    echo "status $?"
    cat errors
    grep '"verdict"' result.json
    sed -n '/"warnings"/,/]/p' result.json
}
show 'nothing to warn of' --sigma-rel 0.1 good out.safetensors
show 'wrong labels; that the weights are large is no news' --update-every 100 --sigma-rel 0.15 bad out.safetensors
show 'a large error' --sigma-rel 0.004 good out.safetensors
show 'an option that is not used' --input-sigma 0.2 --sigma-rel 0.1 good out.safetensors
echo 'snapshot-0004096-0.100.safetensors 1e300' >huge.txt
show 'infinite elements' --weights huge.txt good out.safetensors
show 'numbers that are too large' --weights huge.txt --dtype f16 --overflow saturate good out.safetensors
