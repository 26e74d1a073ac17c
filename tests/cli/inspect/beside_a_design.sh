# inspect --design tells which snapshots of a design are stored, which were missed, and when the next are due.
echo '{"until": 1000, "dtype": "f32", "times": [100, 250, 400, 700, 1000],
 "averages": [{"sigma_rel": 0.05}, {"sigma_rel": 0.1}]}' >plan.json
"$phema" gen -q --no-sync --design plan.json run >/dev/null
says() { "$phema" inspect -q --design plan.json run | grep -A 2 '^  design'; }
says | head -n 1
echo "- a training that runs, and lost a file"
rm run/snapshot-0001000-* run/snapshot-0000700-* run/snapshot-0000250-0.050.safetensors
says | head -n 2
"$phema" inspect -q --json --design plan.json run | sed -n '/"design"/,/\]/p' | tr -d ' \n'
echo
echo "- a snapshot at another time"
"$phema" gen -q --no-sync --count 1 --steps 300 --input-sigma 0.05 other >/dev/null
mv other/snapshot-0000300-0.050.safetensors run
says | head -n 2
echo "- EDM2 counts images, and its names thousands of them"
echo '{"until": 16384, "unit": "images", "dtype": "f16", "times": [4096, 8192, 12288, 16384],
 "averages": [{"sigma_rel": 0.05}, {"sigma_rel": 0.1}]}' >edm2.json
"$phema" inspect -q --design edm2.json "$fixtures/edm2/snapshots" 2>&1 | grep '^  design'
echo "- torchtitan has half-lives and raw parameters"
echo '{"until": 240, "dtype": "f32", "times": [160, 240], "raw": true,
 "averages": [{"sigma_rel": 0.0629}, {"sigma_rel": 0.111}]}' >titan.json
"$phema" inspect -q --design titan.json "$fixtures/trainers/titan_multi_2ranks/checkpoint" 2>&1 | grep '^  design'
echo "- one checkpoint"
"$phema" inspect --design plan.json run/snapshot-0000300-0.050.safetensors 2>&1
echo "- no design"
"$phema" inspect -q --design run/snapshot-0000300-0.050.safetensors run 2>&1
