# Members of a manifest that may be missing may be null: others write so what they do not know.
cat >a.json <<'END'
{"unit": null, "snapshots": [
 {"time": 1000, "sigma_rel": null, "profile": {"kind": "ema", "half_life": 100}},
 {"time": 2000, "sigma_rel": 0.1, "profile": null}]}
END
sed -e 's/"unit": null, //' -e 's/"sigma_rel": null, //' -e 's/, "profile": null//' a.json >b.json
for manifest in a b; do
    "$phema" weights --json --profile ema:half-life=150 $manifest.json >$manifest.out 2>$manifest.err
    echo "$?"
done
sed 's/a[.]json/b.json/' a.out | cmp - b.out && echo same
echo "- what must be there, and keys that are not known"
sed 's/2000/null/' a.json >time.json
sed 's/"profile": null/"sigma": null/' a.json >key.json
sed 's/100}/null}/' a.json >half.json
for manifest in time key half; do
    "$phema" weights --profile ema:half-life=150 $manifest.json 2>&1 | grep posthoc
done
