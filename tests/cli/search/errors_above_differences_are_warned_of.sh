# A warning names widths whose averages differ by less than their predicted error. Where the motion is unknown,
# averages of sigma_rel 0.05 and 0.1 are expected to differ by 3 %. An average does not differ from a snapshot of its
# width.
cat >evaluate <<'EOT'
#!/bin/sh
echo "$1" | sed -E 's/.*-([0-9.]+)\.safetensors/\1/; s/.*-newest\..*/0.3/' | awk '{ print ($1 - 0.1) ^ 2 }'
EOT
chmod +x evaluate
search() { "$phema" search --coarse 2 --exec './evaluate {}' --keep none "$@" 2>&1; }
"$phema" gen -q --count 4 run >/dev/null
"$phema" gen -q --count 4 --dtype bf16 rounded >/dev/null
search --sigma-rel 0.09:0.11 run precise | grep -c warning
search --sigma-rel 0.09:0.11 rounded | tail -n 2
search --sigma-rel 0.09:0.11 --tolerance 0.001 rounded | tail -n 2 | sed -E 's/[0-9]\.[0-9]e/@e/g'
search --sigma-rel 0.09:0.11 --tolerance 0.001 -q rounded
"$phema" gen -q --count 1 single >/dev/null
"$phema" search -q --sigma-rel 0.05,0.1 --tolerance 0.5 --json --keep none --exec './evaluate {}' single model |
    awk '/"distance"/ { printf "%.6f\n", $2 }'
cat >evaluate <<'EOF'
#!/bin/sh
case $1 in *-newest.*) echo 1 ;; *) echo 2 ;; esac
EOF
"$phema" search --sigma-rel 0.05,0.1 --tolerance 0.5 --exec './evaluate {}' run same 2>&1 | grep warning |
    sed -E 's/[0-9]\.[0-9]e[-+][0-9]+ of \|/@ of |/; s/[0-9]\.[0-9]e-[0-9]+:/@:/'
