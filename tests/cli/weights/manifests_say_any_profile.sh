# Every kind of profile, as an object or as a SPEC. Tables lie next to the manifest.
mkdir there
printf '1 0\n10 0.9\n100 0.8 # the last\n1600 0.7' >there/betas.txt
cat >there/m.json <<'EOF'
{"snapshots": [
  {"time": 1000, "sigma_rel": 0.05, "profile": {"kind": "power", "update_every": 1}},
  {"time": 1000, "profile": {"kind": "ema", "half_life": 100}},
  {"time": 1000, "profile": {"kind": "ema", "decay": 0.99}},
  {"time": 1000, "profile": {"kind": "diffusers", "decay": 0.99, "warmup": true, "inv_gamma": 2}},
  {"time": 1500, "profile": {"kind": "table", "file": "betas.txt"}},
  {"time": 2000, "profile": "table:betas.txt"},
  {"time": 2000, "profile": {"kind": "edm-ema", "half_life": 300, "ramp": 0.05}},
  {"time": 2000, "profile": {"kind": "window", "length": 300}},
  {"time": 2000, "profile": {"kind": "cosine", "length": 300}},
  {"time": 2000, "profile": {"kind": "minus-sqrt", "length": 300}},
  {"time": 2000, "profile": {"kind": "raw"}},
  {"time": 2000, "profile": {"kind": "titan", "fraction": 0.1, "every": 4, "counting": "floor"}},
  {"time": 2000, "profile": {"kind": "cosmos", "sigma_rel": 0.05, "shift": 500}},
  {"time": 2000, "profile": "lightning:decay=0.99,start=100"},
  {"time": 2000, "profile": "power:gamma=6.94"}]}
EOF
"$phema" weights --json -q --profile raw there/m.json |
    sed -n 's/.*"file": "\([^"]*\)".*"profile": "\([^"]*\)", "spec": "\([^"]*\)".*/\1 \2 \3/p'
"$phema" weights --sigma-rel 0.1 there/m.json 2>&1 >/dev/null | head -n 1
try() {
    printf '{"snapshots": [{"time": 1000, "profile": %s}]}' "$1" >m.json
    "$phema" weights --sigma-rel 0.1 m.json
    echo $?
}
exec 2>&1
try '{"kind": "ema"}'
try '{"kind": "ema", "half_life": 100, "sigma": 5}'
try '{"kind": "ema", "half_life": "100"}'
try '{"kind": "ema", "half_life=5,decay": 100}'
try '{"kind": "window", "length": 1001}'
try '{"kind": "sma", "n": 3}'
try '{"kind": "table", "file": "nowhere.txt"}'
try '{"kind": "table", "file": "m.json", "more": 1}'
try '{"kind": "table"}'
try '{"kind": "raw: 5"}'
try '"raw - raw"'
try '"power:sigma=0.5"'
try '"emu"'
try '5'
try '"raw", "sigma_rel": 0.1'
