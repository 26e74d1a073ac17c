# quad and LAPACK give the same weights to 9 digits, and their sum is 1 after the paper's division.
"$phema" gen --count 8 run >/dev/null
for solver in quad lapack; do
    # shellcheck disable=SC2094 # names of files, which are other files
    "$phema" weights -q --json --metric profile --solver $solver --sigma-rel 0.15 run |
        sed -n '/"targets"/,$p' | grep -o '"weights": \[[^]]*\]' | tr -d '[],' | tr ' ' '\n' | sed 1d >$solver
done
wc -l <quad
paste quad lapack | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d; sum += $1 }
    END { print (worst < 1e-9 ? "equal" : "differ by " worst), (sum - 1 < 1e-12 && 1 - sum < 1e-12 ? "sum 1" : sum) }'
