"$phema" gen --count 2 --steps 100 run >/dev/null
ls run/*100.safetensors run/*0050-0.050.safetensors run/*100-0.050.safetensors | sort >list
echo ./run/snapshot-0000050-0.050.safetensors >>list
"$phema" weights --sigma-rel 0.1 @list 2>&1 | sed 's/gamma [0-9.]*/gamma G/'
echo "${PIPESTATUS[0]}"
