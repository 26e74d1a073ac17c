exec 2>&1
for width in 0 -0.125 0.2890625 0.296875 0.3125 1 inf; do
    "$phema" convert --sigma-rel "$width"
    echo "$?"
done
for gamma in -0.5 -1 -7 inf; do
    "$phema" convert --gamma "$gamma"
    echo "$?"
done
