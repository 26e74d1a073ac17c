"$phema" gen --count 2 --steps 100 run >/dev/null
ls -r run/snapshot-*-0.050.safetensors >list.txt
printf 'run/snapshot-0000100-0.100.safetensors\r\n\n' >>list.txt
"$phema" weights -v --sigma-rel 0.07 @list.txt
echo run/missing-0000200-0.050.safetensors >>list.txt
"$phema" weights -q --sigma-rel 0.07 @list.txt
echo "$?"
"$phema" weights -q --sigma-rel 0.07 @no.txt
