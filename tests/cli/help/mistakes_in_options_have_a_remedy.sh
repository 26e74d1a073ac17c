# Misspelt verbs and options, and values that cannot be read: the command after "try:" runs.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 run >/dev/null
synth() {
    remedy synth --no-sync --sigma-rel 0.1 "$@" run out.safetensors
    rm -rf out.safetensors*
}
synth --resum
synth --skip_existing
synth --force=yes
synth --max-ram 1G5
synth --max-ram 1 | sed 's/at least [0-9.]* [KMG]iB/at least N KiB/; s/[0-9]*MiB/N MiB/' # depends on the build
synth -j 0
synth --dtype int8
synth --device gpu
synth --overflow saturated
synth --part 3/2
remedy inspct run
remedy help synthh
remedy weights --advise --sigma-rel 0.1 run
remedy plan --sigma-rel 0.1
remedy gen --steps 10 --count 100 new
remedy gen --count x new2
remedy convert 0.1
remedy convert --half-life 5000
remedy inspect --tensor w run
