"$phema" convert --sigma-rel 0.05:0.25:0.05 | cut -c 1-8
"$phema" convert --sigma-rel 0.010,0.015,...,0.250 | wc -l
"$phema" convert --sigma-rel 0.01:0.25:0.005 | cmp - <("$phema" convert --sigma-rel 0.010,0.015,...,0.250)
"$phema" convert --sigma-rel 0.25:0.05:-0.1,0.07 | cut -c 1-8
"$phema" convert --sigma-rel 0.1 --sigma-rel 0.2 | cut -c 1-8
# An end with more digits than the step, or with an exponent, keeps the value that the user wrote.
"$phema" convert --gamma 1e-9:1.0:0.1 --json | sed -n 's/.*"gamma": \([^,]*\),.*/\1/p' | head -n 2
