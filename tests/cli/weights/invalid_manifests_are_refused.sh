# The JSON library may word a syntax error in any way, but the place of the error is fixed.
try() {
    printf '%s' "$1" >m.json
    "$phema" weights --sigma-rel 0.1 m.json 2>&1 | sed 's/\(not valid at byte [0-9]*\): .*/\1/'
    echo "${PIPESTATUS[0]}"
}
try '{"snapshots": [{"time": 1, "sigma": 0.1}]}'
try '{"snapshot": []}'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1, "profile": {"kind": "power", "gamma": 3, "beta": 1}}]}'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1, "sigma_rel": 0.1}]}'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1}]'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1}]} x'
try '{"snapshots": [{"sigma_rel": 0.1}]}'
try '{"snapshots": [{"time": "1", "sigma_rel": 0.1}]}'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1, "profile": {"kind": "power", "gamma": 3}}]}'
try '{"snapshots": [{"time": 1, "profile": {"kind": "window", "gamma": 3}}]}'
try '{"snapshots": [{"time": 1, "profile": {"gamma": 3}}]}'
try '{"snapshots": [{"time": 1, "profile": {"kind": "power", "gamma": 3, "update_every": 0}}]}'
try '{"snapshots": [{"time": 1, "sigma_rel": 0.1, "file": ""}]}'
try '{"snapshots": {}}'
try '[]'
try '{"unit": 5, "snapshots": []}'
