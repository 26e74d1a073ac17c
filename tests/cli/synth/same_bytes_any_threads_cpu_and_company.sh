# Output depends on the plan alone: not on threads, CPU level, or the other targets of the run.
"$phema" gen -q --count 6 --steps 300 --params 200k --tensors 7 --dtype f16 run >/dev/null
"$phema" synth -q -j1 --sigma-rel 0.03,0.15,0.25 run all/ >/dev/null
"$phema" synth -q -j2 --sigma-rel 0.15 run two.safetensors >/dev/null
"$phema" synth -q -j3 --sigma-rel 0.15 run three.safetensors >/dev/null
for cpu in ref avx2 avx512 neon; do
    PHEMA_CPU=$cpu "$phema" synth -q --sigma-rel 0.15 run $cpu.safetensors >/dev/null
    cmp $cpu.safetensors all/phema-0000300-0.150.safetensors && echo "$cpu: same"
done
cmp two.safetensors all/phema-0000300-0.150.safetensors && echo "two threads: same"
cmp three.safetensors all/phema-0000300-0.150.safetensors && echo "three threads: same"
cmp two.safetensors all/phema-0000300-0.250.safetensors >/dev/null || echo "another width: another file"
