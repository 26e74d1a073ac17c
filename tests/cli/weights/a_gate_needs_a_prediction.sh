"$phema" gen -q --count 3 run >/dev/null
"$phema" weights -q --sigma-rel 0.1 --max-error 0.5 run >/dev/null
echo $?
"$phema" weights -q --sigma-rel 0.1 --max-error 1e-12 run >/dev/null
echo $?
"$phema" weights -q --sigma-rel 0.1 --max-error nan run >/dev/null
echo $?
echo "snapshot-0004096-0.050.safetensors 1" >list
"$phema" weights -q --weights list --max-error 0.5 run >/dev/null
echo $?
