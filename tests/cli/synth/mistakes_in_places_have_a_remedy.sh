# URLs, a conversion with a target, and outputs without parts: the command after "try:" runs, if there is one. A file of
# the same name that lies here is taken for the download.
"$phema" gen -q --count 2 --steps 64 --params 200 --tensors 2 --no-sync run >/dev/null
for url in s3://bucket/run https://host/run "file://$PWD/run"; do
    remedy synth --no-sync --sigma-rel 0.1 "$url" out.safetensors | sed "s|$PWD|HERE|g"
    rm -f out.safetensors
done
remedy inspect gs://bucket/a.safetensors
remedy diff "file://$PWD/run/snapshot-0000064-0.100.safetensors" run/snapshot-0000064-0.100.safetensors | sed "s|$PWD|HERE|g"
remedy synth --no-sync --sigma-rel 0.1 run s3://bucket/out.safetensors
remedy synth --no-sync --convert --sigma-rel 0.1 run converted.safetensors
remedy synth --no-sync --convert --sigma-rel 0.1 --at 64 run/snapshot-0000064-0.100.safetensors single.safetensors
for part in 1 2; do
    "$phema" synth -q --no-sync --sigma-rel 0.1 --part $part/2 run joined.safetensors
done
remedy join --no-sync joind.safetensors
remedy join --no-sync joined.safetensors
remedy join --no-sync run
remedy join --no-sync nothing
remedy synth --no-sync --sigma-rel 0.1 hf://org/run2 out.safetensors
remedy inspect https://huggingface.co/org/model
remedy synth --no-sync --sigma-rel 0.1 abfs://container/nosuch out.safetensors
remedy synth --no-sync --sigma-rel 0.1 --into s3://bucket/x.pt run out.pt
rm -rf out.safetensors other
remedy synth --no-sync --sigma-rel 0.1 run s3://bucket/out
remedy synth --no-sync --sigma-rel 0.1 run 's3://bucket/{sigma}.safetensors'
remedy search --no-sync --exec "sh -c 'echo 1' {}" --sigma-rel 0.05:0.2 run gs://bucket/found/
remedy gen --count 2 --params 200 --tensors 2 --no-sync s3://other
remedy plot error run -o https://host/error.svg
remedy report run -o s3://bucket/page.html
remedy join s3://bucket/joined.safetensors
mkdir empty
(cd empty && remedy join)
"$phema" synth -q --no-sync --sigma-rel 0.1 --part 1/2 run second.safetensors
"$phema" synth -q --no-sync --sigma-rel 0.1 --part 2/2 run second.safetensors
remedy join
