# --into copies any checkpoint of the model, with the averages in place of its tensors. The snapshots may be
# of any kind. The copy keeps its dtypes and all tensors that are not averaged.
"$phema" gen -q --count 4 --no-sync run >/dev/null
last=run/snapshot-0004096-0.100.safetensors
"$phema" synth -q --sigma-rel 0.07 run out.safetensors
echo "- into a plain file, in the same bytes"
"$phema" synth -q --sigma-rel 0.07 --into $last run copy.safetensors
"$phema" diff copy.safetensors out.safetensors
cmp -s $last copy.safetensors || echo "changed"
[ "$(stat -c %s $last)" = "$(stat -c %s copy.safetensors)" ] && echo "as long as before"
echo "- how it was made is beside it, so that it is no snapshot of the next run"
ls copy.safetensors.json
"$phema" gen -q --count 4 --no-sync with_copy >/dev/null
cp copy.safetensors with_copy/snapshot-0004096-0.070.safetensors
cp copy.safetensors.json with_copy/snapshot-0004096-0.070.safetensors.json
"$phema" weights --sigma-rel 0.1 with_copy 2>&1 | grep -e 'snapshots:' -e 'left out'
echo "- of one tensor; a new file would hold that alone"
first=$("$phema" inspect $last | awk '/ B  / { print $NF; exit }')
"$phema" synth -q --sigma-rel 0.07 --include "^$first\$" --into $last run part.safetensors
"$phema" diff part.safetensors $last | tail -n 1 | grep -o '[0-9]* of [0-9]* tensors differ'
"$phema" synth -q --sigma-rel 0.07 --include "^$first\$" run alone.safetensors
"$phema" inspect alone.safetensors | head -n 1
"$phema" synth -q --convert --include "^$first\$" part.safetensors part_alone.safetensors
"$phema" diff part_alone.safetensors alone.safetensors
echo "- into one of another dtype, which is written"
"$phema" synth -q --convert --dtype f16 $last half.safetensors
"$phema" synth -q --sigma-rel 0.07 --dtype f16 run out_half.safetensors
"$phema" synth -q --sigma-rel 0.07 --into half.safetensors run into_half.safetensors
"$phema" inspect into_half.safetensors | grep '^  F'
"$phema" diff into_half.safetensors out_half.safetensors
echo "- several targets, each a copy"
"$phema" synth -q --sigma-rel 0.05,0.07 --into $last run 'of-{sigma}.safetensors'
"$phema" synth -q --sigma-rel 0.05,0.07 --into half.safetensors run many/
"$phema" diff of-0.070.safetensors out.safetensors
cmp many/phema-0004096-0.070.safetensors into_half.safetensors && ls many
echo "- below state_dict, beside what is not of the model"
for step in 1 2; do # the raw parameters of the first time, then those of the second
    cp "$fixtures/lightning/ema_state_dict/epoch=$((step - 1))-step=${step}00.ckpt" step$step.ckpt
    "$phema" synth -q --convert --key ema_state_dict step$step.ckpt snapshot-000000$step-0.050.safetensors
done
printf 'snapshot-0000001-0.050.safetensors 0.25\nsnapshot-0000002-0.050.safetensors 0.75\n' >weights.txt
printf 'snapshot-0000001-0.050.safetensors\nsnapshot-0000002-0.050.safetensors\n' >list.txt
"$phema" synth -q --weights weights.txt --into step1.ckpt @list.txt out.ckpt
"$phema" synth -q --convert --key state_dict out.ckpt replaced.safetensors
"$phema" diff replaced.safetensors "$fixtures/lightning/expected/ema_state_dict.safetensors"
"$phema" diff -v out.ckpt step1.ckpt | awk '$1 != 0 && !/differ$|^rel_l2|equal/ { print $NF }'
echo "- below the key of the snapshots, or the one that is asked for"
printf 'epoch=0-step=100.ckpt 0.25\nepoch=1-step=200.ckpt 0.75\n' >weights.txt
"$phema" synth -q --weights weights.txt --into step1.ckpt "$fixtures/lightning/ema_state_dict" ema.ckpt
"$phema" synth -q --convert --key ema_state_dict ema.ckpt replaced_ema.safetensors
"$phema" diff replaced_ema.safetensors "$fixtures/lightning/expected/ema_state_dict.safetensors"
"$phema" synth -q --weights weights.txt --into step1.ckpt --key state_dict \
    "$fixtures/lightning/ema_state_dict" raw.ckpt
"$phema" diff -v raw.ckpt step1.ckpt | awk '$1 != 0 && !/differ$|^rel_l2|equal/ { print $NF }'
echo "- named as the file is, whatever that is; and one checkpoint put into another as it is"
cp step1.ckpt pytorch_model.bin
"$phema" synth -q --weights weights.txt --into pytorch_model.bin "$fixtures/lightning/ema_state_dict" out.bin
cmp out.bin ema.ckpt && ls out.bin*
"$phema" synth -q --convert --into step1.ckpt --key state_dict step2.ckpt both.ckpt
ls both*
"$phema" synth -q --convert --key state_dict both.ckpt both.safetensors
"$phema" synth -q --convert --key state_dict step2.ckpt two.safetensors
"$phema" diff both.safetensors two.safetensors
echo "- of sharded snapshots"
mkdir -p hf/checkpoint-{1,2}
cp "$fixtures"/sharded/model*.{safetensors,index.json} hf/checkpoint-1
cp "$fixtures"/sharded/model*.{safetensors,index.json} hf/checkpoint-2
printf 'checkpoint-1 0.5\ncheckpoint-2 0.25\n' >weights.txt
"$phema" synth -q --convert hf/checkpoint-1 one.safetensors
"$phema" synth -q --weights weights.txt --into one.safetensors hf of_shards/
"$phema" synth -q --weights weights.txt hf shards
"$phema" diff of_shards/*.safetensors shards
