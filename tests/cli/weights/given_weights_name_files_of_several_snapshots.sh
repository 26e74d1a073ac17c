# Weights may name a snapshot as FILE:KEY, or as FILE where it is the only snapshot in the file.
megatron=$fixtures/trainers/megatron titan=$fixtures/trainers/titan/checkpoint
weights() { "$phema" weights -q --json --weights "$1" "${@:2}" 2>&1 | grep -oE "(\"weights\": |^posthoc)[^]]*";  }
"$phema" inspect -v "$megatron" 2>/dev/null | grep -o 'iter_[0-9]*:[a-z]*' | sort -u
printf 'iter_0000030 0.25\niter_0000060 0.75\n' >files
printf 'iter_0000030:raw 0.25\n./iter_0000060 0.75\n' >mixed
printf '%s 0.25\n%s 0.75\n' "$megatron/iter_0000030" "$megatron/iter_0000060:raw" >paths
for list in files mixed paths; do weights $list "$megatron"; done
echo '{"snapshots": [{"file": "iter_0000060"}], "targets": [{"weights": [1]}]}' >one.json
weights one.json "$megatron"
echo "- twice, with a key that is not there, and none"
printf 'iter_0000030:raw 0.25\niter_0000030 0.75\n' >twice
printf 'iter_0000030:ema 1\n' >key
printf 'iter_0000030: 1\n' >empty_key
for list in twice key empty_key; do weights $list "$megatron"; done
echo "- a file of several"
newest=$("$phema" inspect -v "$titan" 2>/dev/null | grep -o 'step-[0-9]*' | tail -n 1)
echo "$newest 1" >several
echo "$newest:raw 1" >raw
for list in several raw; do weights $list "$titan"; done
weights several --use raw "$titan"
