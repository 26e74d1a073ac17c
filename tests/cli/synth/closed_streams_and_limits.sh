# A closed stream must not give its descriptor to the output. A run leaves nothing behind when the reader of
# a pipe exits, or when the output reaches a limit on file size.
"$phema" gen -q --count 4 --params 2M --steps 16 --no-sync run >/dev/null
"$phema" synth --no-sync --progress json --sigma-rel 0.1 run a.safetensors >/dev/null 2>&1
"$phema" synth --no-sync --progress json --sigma-rel 0.1 run b.safetensors >/dev/null 2>&-
echo "stderr closed: $?"
cmp a.safetensors b.safetensors && echo "same"
"$phema" synth -q --no-sync --sigma-rel 0.1 run c.safetensors >&-
echo "stdout closed: $?"
cmp a.safetensors c.safetensors && echo "same"
(
    ulimit -f 1000
    "$phema" synth -q --no-sync --sigma-rel 0.1 run d.safetensors
    echo "file size limit: $?"
)
mkfifo pipe
exec 5<>pipe
exec 6>pipe
exec 5<&- # a pipe whose reader has left
env --default-signal=PIPE "$phema" synth --no-sync --progress json --sigma-rel 0.01:0.28:0.01 run e/ >/dev/null 2>&6
echo "pipe without a reader: $?"
exec 6>&-
rm pipe
ls
