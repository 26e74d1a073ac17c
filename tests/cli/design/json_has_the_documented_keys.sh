# The keys of --json; numbers are left out, since they may differ in their last digits.
"$phema" design --until 100k --model 4M --disk 80M --sigma-rel 0.05:0.2 --json >out
sed -E 's/-?[0-9][0-9.e+-]*/N/g; s/(N,? ?)+/N/g; s/"lines": ".*"/"lines": TEXT/; s/"f(N)"/"f"/g' out |
    grep -oE '"[a-z_]+":|"[a-z][a-zA-Z -]*"' | awk '!seen[$0]++'
