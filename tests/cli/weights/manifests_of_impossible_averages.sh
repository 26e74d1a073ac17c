try() {
    printf '{"snapshots": [%s]}' "$1" >m.json
    "$phema" weights --sigma-rel 0.1 m.json 2>err
    echo "$? $(wc -l <err)"
}
try ''
try '{"time": 1}'
try '{"time": 1, "profile": {"kind": "power"}}'
try '{"time": 1, "profile": {"kind": "power", "gamma": -2}}'
try '{"time": 1, "sigma_rel": 0.5}'
try '{"time": 0, "sigma_rel": 0.1}'
try '{"time": -1, "sigma_rel": 0.1}'
try '{"time": 1e300, "sigma_rel": 0.1}'
try '{"time": 1, "sigma_rel": 0.1}, {"time": 1, "sigma_rel": 0.1}'
try '{"time": 1, "sigma_rel": 0.1}, {"time": 1, "sigma_rel": 0.05}, {"time": 1, "sigma_rel": 0.1}'
