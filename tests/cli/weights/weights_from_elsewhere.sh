exec 2>&1
"$phema" gen --count 2 --steps 100 run >/dev/null
try() {
    printf "$1" >theirs.txt
    shift
    "$phema" weights --weights theirs.txt "$@" run
    echo "$?"
}
try '# half of each\nsnapshot-0000100-0.050.safetensors 0.5\n\n./snapshot-0000100-0.100.safetensors\t0.5\n' --sigma-rel 0.07
try 'run/snapshot-0000100-0.050.safetensors 2\n'
try 'snapshot-0000100-0.070.safetensors 1\n'
try 'snapshot-0000100-0.050.safetensors 1\nsnapshot-0000100-0.050.safetensors 1\n'
try 'snapshot-0000100-0.050.safetensors one\n'
try 'snapshot-0000100-0.050.safetensors\n'
try 'snapshot-0000100-0.050.safetensors nan\n'
try '# nothing\n'
try ''
try '{"targets": []}'
try 'snapshot-0000100-0.050.safetensors 1\n' --metric walk
try 'snapshot-0000100-0.050.safetensors 1\n' --sigma-rel 0.1,0.2
"$phema" weights --weights missing.txt run
echo "$?"
