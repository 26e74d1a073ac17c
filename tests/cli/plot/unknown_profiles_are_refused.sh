# Weights need no profiles and are drawn. Unknown profiles are refused.
"$phema" gen --quiet --count 2 run
cd run && mv snapshot-0002048-0.050.safetensors a-1.safetensors &&
    mv snapshot-0004096-0.050.safetensors a-2.safetensors && rm snapshot-*; cd ..
printf 'a-1.safetensors 0.25\na-2.safetensors 0.75\n' >given.txt
"$phema" diff -q run/a-1.safetensors run/a-1.safetensors
python3 - <<'END'
import json
# without metadata: the header again, and no more
for i in (1, 2):
    data = open(f"run/a-{i}.safetensors", "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    text = json.dumps(header).encode()
    open(f"run/a-{i}.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[8 + size:])
END
"$phema" plot --quiet weights --name-regex '-(?<time>\d+)' --weights given.txt run -o weights.csv
cat weights.csv
"$phema" plot --quiet profiles --name-regex '-(?<time>\d+)' --weights given.txt run -o a.svg
