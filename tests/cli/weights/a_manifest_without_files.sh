cat >plan.json <<END
{"unit": "images", "snapshots": [
  {"time": 2000, "sigma_rel": 0.10}, {"time": 1000, "profile": {"kind": "power", "sigma_rel": 0.10}},
  {"time": 2000, "profile": {"kind": "power", "gamma": 17}}, {"time": 1000, "sigma_rel": 0.05}]}
END
"$phema" weights --sigma-rel 0.15 plan.json
"$phema" weights -q --json --sigma-rel 0.15 plan.json | sed -n '1,/\]/p'
