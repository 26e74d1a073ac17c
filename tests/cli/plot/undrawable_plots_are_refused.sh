"$phema" gen --quiet --count 2 run
printf 'sigma_rel,score\n0.1,1\n' >scores.csv
try() {
    "$phema" plot "$@" 2>&1
    echo "status $?"
}
try
try pictures run -o a.svg
try run weights -o a.svg
try weights
try weights --sigma-rel 0.1 run
try weights --sigma-rel 0.1 run -o a.gif
try weights --sigma-rel 0.1 run -o svg
try weights run -o a.svg
try weights --sigma-rel 0.02:0.1:0.01 run -o a.svg --quiet
try weights --sigma-rel 0.4 run -o a.svg
try weights --sigma-rel 0.1 run -o a.csv --csv a.csv
try error --at 2048,4096 run -o a.svg
try error --profile raw run -o a.svg
try error --maximize run -o a.svg
try sweep --sigma-rel 0.1 scores.csv -o a.svg
try memory --from 3 scores.csv -o a.svg
try sweep --max-ram 1G scores.csv -o a.svg
ls
