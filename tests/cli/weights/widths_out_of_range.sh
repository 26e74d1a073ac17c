exec 2>&1
"$phema" gen --count 1 run >/dev/null
for width in 0 0.3125 0.1,0.5; do
    "$phema" weights --sigma-rel $width run
    echo "$?"
done
for gamma in -0.5 -0.375 -1; do
    "$phema" weights --gamma $gamma run
    echo "$?"
done
