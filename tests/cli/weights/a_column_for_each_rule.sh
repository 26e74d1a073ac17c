# Columns of rules follow those of the targets. Their weights equal those of a run with that width alone.
# Without files there are no names for a rule to match.
cat >run.json <<END
{"snapshots": [
  {"time": 1000, "sigma_rel": 0.05}, {"time": 1000, "sigma_rel": 0.1},
  {"time": 2000, "sigma_rel": 0.05}, {"time": 2000, "sigma_rel": 0.1}]}
END
weights() { "$phema" weights -q --metric profile "$@" run.json; }
weights --sigma-rel 0.07,0.15 --rule 'attn=0.06' --rule 'emb=copy' \
    --rule 'an expression that is longer than a column=0.2'
echo
weights --at 1000,2000 --sigma-rel 0.08 --rule 'attn=0.07'
echo
"$phema" weights --sigma-rel 0.1 --rule 'emb=copy' --rule 'attn=0.2' run.json 2>&1 >/dev/null | grep rule | sed 's/:.*//'
weights --json --sigma-rel 0.1 --rule 'emb=copy' --rule 'attn=0.2' >rules.json
sed -n '/"rules"/p' rules.json | grep -o '"rules.*' | sed 's/: -*[0-9][-0-9.e]*/: #/g; s/\[[-0-9][^]]*\]/[#]/'
column() { grep -o '"weights": *\[[^]]*\]' | sed -n "$1p"; }
[ "$(column 2 <rules.json)" = "$(weights --json --sigma-rel 0.2 | column 1)" ] && echo "as alone"
[ "$(column 1 <rules.json)" = "$(weights --json --sigma-rel 0.1 | column 1)" ] && echo "and without"
