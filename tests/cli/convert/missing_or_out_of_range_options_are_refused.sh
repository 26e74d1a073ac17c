exec 2>&1
"$phema" convert
echo "$?"
"$phema" convert --at 100
echo "$?"
"$phema" convert --decay 0.999
echo "$?"
"$phema" convert --half-life 100
echo "$?"
for decay in 0 1 1.5 -0.5 nan; do
    "$phema" convert --decay "$decay" --at 1000
    echo "$?"
done
for at in 0 -5 inf 1e16; do
    "$phema" convert --sigma-rel 0.1 --at "$at"
    echo "$?"
done
"$phema" convert --half-life 0,2000 --at 1000
echo "$?"
"$phema" convert --half-life 2000 --at 1000
echo "$?"
"$phema" convert --half-life 750 --at 1000
echo "$?"
"$phema" convert --beta 0.99
echo "$?"
for beta in 0 1 0.9999; do
    "$phema" convert --beta "$beta" --at 100
    echo "$?"
done
"$phema" convert --beta 0.5 --at 1
echo "$?"
"$phema" convert --ema-half-life 500 --at 1000
echo "$?"
"$phema" convert --half-life-rel 0.75
echo "$?"
