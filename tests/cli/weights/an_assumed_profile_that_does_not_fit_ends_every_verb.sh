# Lightning's files do not say how their averages were made. Where its default does not fit the snapshots, no
# verb goes on, and the message has a setting that fits. --checks warn goes on.
make() { # profile, steps between updates: averages and raw parameters in lightning/
    rm -rf run lightning
    "$phema" gen -q --count 16 --params 2K --raw --input-profile "$1" run >/dev/null
    "$fixtures/../tests/with_python" json "$fixtures/../tests/cli/bin/containers" "$PWD/run" "$PWD/lightning" "${2-1}"
}
verb() {
    "$phema" "$@" 2>&1
    echo "status $?"
}
make lightning:decay=0.999 || exit 77
verb synth -q --no-sync --sigma-rel 0.1 lightning good.safetensors
make lightning:decay=0.99
verb synth -q --no-sync --sigma-rel 0.1 lightning out.safetensors
verb plan -q --sigma-rel 0.1 lightning
verb weights -q --sigma-rel 0.1 lightning
verb report -q lightning -o page.html
verb plot -q error lightning -o error.svg
verb search -q --sigma-rel 0.05,0.1 --exec 'wc -c {}' lightning found
verb design -q --until 8192 --model 8K --disk 1M --sigma-rel 0.1 --like lightning
verb inspect -q lightning
ls
echo "- the command after try:"
verb synth -q --no-sync --input-profile lightning:decay=0.99 --sigma-rel 0.1 lightning out.safetensors
echo "- --checks warn and off"
verb synth -q --no-sync -f --checks warn --sigma-rel 0.1 lightning out.safetensors
verb verify -q out.safetensors
verb synth -q --no-sync -f --checks off --sigma-rel 0.1 lightning out.safetensors
echo "- equal weights, as WeightAveraging has them"
make power:gamma=0
verb weights -q --sigma-rel 0.1 lightning
echo "- a count of updates that contradicts the default: inspect shows the series"
make lightning:decay=0.999,every=2 2
verb weights -q --sigma-rel 0.1 lightning
verb inspect lightning
