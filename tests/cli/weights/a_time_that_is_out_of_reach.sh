exec 2>&1
"$phema" gen --count 4 run >/dev/null
"$phema" weights --sigma-rel 0.1 --at 4097 run
echo "$?"
"$phema" weights --sigma-rel 0.1 --at 4096,8k run
echo "$?"
"$phema" weights --sigma-rel 0.1 --at 1023 run
echo "$?"
"$phema" weights --sigma-rel 0.1 --at 0 run
echo "$?"
"$phema" weights --sigma-rel 0.1 --at -5 run
echo "$?"
