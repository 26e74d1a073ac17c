# One target takes three bytes in the file, but a weight for every snapshot in memory.
exec 2>&1
"$phema" gen --count 2 --steps 100 run >/dev/null
targets() {
    printf '{"snapshots": [{"file": "snapshot-0000100-0.050.safetensors"}], "targets": ['
    yes '{"weights": [1]},' | head -n "$(($1 - 1))"
    echo '{"weights": [1]}]}'
}
targets 10000 >most
"$phema" weights -q --json --weights most run | grep -c '"weights"'
targets 10001 >"more"
"$phema" weights -q --weights more run
echo $?
