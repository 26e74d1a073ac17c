# Each option of synth: its second run with --skip-existing finds the output of the first one up to date (0). A third
# run with another value is refused (6) where the option shapes the output. Lines: option, status of the three runs.
"$phema" gen -q --count 4 --params 200 --tensors 2 run >/dev/null
"$phema" gen -q --count 4 --params 200 --tensors 2 --input-profile raw raw >/dev/null
"$phema" synth -q --sigma-rel 0.1 run a.safetensors >/dev/null
cp a.safetensors b.safetensors
cp -r run ids
LC_ALL=C sed -i 's/"posthoc_ema.unit":"steps"/"posthoc_ema.run":"3f2a0b"/' ids/*-000[12]*
LC_ALL=C sed -i 's/"posthoc_ema.unit":"steps"/"posthoc_ema.run":"4f2a0b"/' ids/*-000[34]*
newest=$(find run -name '*4096-0.050*')
printf '%s 1\n' "${newest##*/}" >one
printf '%s 0.5\n' "${newest##*/}" >half
own='(?<time>[0-9]+)-(?<sigma>[.0-9]+)[.]s'
declare -A seen
# try OPTION, words of two runs, words of the third one, what all have, OUT
try() {
    local out=${5:-o.safetensors} words statuses=
    seen[$1]=1
    rm -rf o o.* memory
    for words in "$2" "$2" "$3"; do
        # shellcheck disable=SC2086 # words
        "$phema" synth --skip-existing ${4:---sigma-rel 0.1 run} $words "$out" >/dev/null 2>said
        statuses+=" $?"
    done
    echo "$1$statuses$(sed -n 's/^posthoc-ema: .*up to date (--force replaces it)//p' said)"
}
try layout '--layout own' ''
try name-regex "--name-regex 0*$own" "--name-regex 000${own/[/[34][}"
index='--sigma-rel 0.1 --input-sigma'
try input-sigma '0.05,0.28' '0.05,0.2' "--update-every 10 $fixtures/posthoc_ema/snapshots $index" o.pt
try input-profile "--input-profile ema:half-life=9" "--input-profile ema:half-life=8" \
    "$fixtures/lightning/ema_state_dict --sigma-rel 0.1"
try update-every '--update-every 10' '--update-every 9' "$fixtures/posthoc_ema/snapshots $index 0.05,0.28" o.pt
try reset-at '--reset-at 2000' '--reset-at 1500'
try time-offset '--time-offset 100' '--time-offset 200'
try unit '--unit images' '--unit kimg'
try from '--from 2000' ''
try to '--to 3000' ''
try every '--every 2' ''
try last '--last 2' ''
try run '--run 3f' '--run 4f' '--sigma-rel 0.1 ids'
try use '--use averages' ''
try include '--include weight' ''
try exclude '--exclude bias' ''
try key '--key .' ''
try allow-global '--allow-global a.B' ''
try checks '--checks error' ''
try sigma-rel '--sigma-rel 0.12' '--sigma-rel 0.11' run
try gamma '--gamma 7' '--gamma 8' run
try profile '--profile ema:half-life=500' '--profile ema:half-life=400' run
try at '--at 3000' ''
try rule '--rule bias=copy' '--rule bias=0.2'
try weights '--weights one' '--weights half' run
try metric '--metric walk' '--metric profile'
try schedule '--schedule cosine' '' '--input-profile raw --profile ema:half-life=500 raw'
try ridge '--ridge 1' '--ridge none'
try solver '--solver quad' ''
try max-error '--max-error 9' ''
try accumulate '--accumulate f64' '--accumulate f32'
try gpu-sums '--gpu-sums exact' ''
try into '--into a.safetensors' '--into b.safetensors'
try shard-size '--shard-size 1k' '--shard-size 1M' '' o/
try ranks '--ranks 2' '--ranks 1' '' o/
try level '--level 1' '--level 19' '' o.safetensors.zst
try level '--level 3' '' '' o.safetensors.zst
try dtype '--dtype bf16' '--dtype f16'
try overflow '--overflow inf' '--overflow saturate'
try buffers '--buffers average' ''
try input-hash '--input-hash sampled' '--input-hash full'
try force '--force' ''
try no-sync '--no-sync' ''
try skip-existing '' ''
try resume '--resume' ''
try nan '--nan error' ''
try verify '--verify' ''
try threads '--threads 2' '--threads 1'
try device '--device cpu' ''
try gpu-memory '--gpu-memory 0.5' ''
try io '--io mmap' '--io direct'
try io-depth '--io-depth 2' ''
try drop-cache '--drop-cache' ''
try max-ram '--max-ram 64M' '--max-ram 128M'
try profile-memory "--profile-memory memory --force" ''
try progress '--progress json' ''
for flag in json quiet verbose no-color help; do
    try "$flag" "--$flag" ''
done
try color '--color always' ''
echo "- copies have no provenance, and parts have launchers"
"$phema" synth --skip-existing --convert "$newest" o.safetensors 2>&1
seen[convert]=1
export SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1
try part '--part auto' '--part auto --dtype f16'
try part '--part auto --level 9' '--part auto --level 8' '' o.safetensors.zst
echo "- options without a line above"
for option in $("$phema" help --completions bash | sed -n "/^    synth)/,/;;$/s/^ *\(flags\|valued\)='\(.*\)'$/\2/p"); do
    [[ $option != --* || ${seen[${option#--}]-} ]] || echo "$option"
done
