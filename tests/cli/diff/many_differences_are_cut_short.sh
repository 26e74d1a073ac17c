"$phema" gen --count 2 --steps 8 --input-sigma 0.1 --tensors 30 --params 300 run >/dev/null
"$phema" diff run/snapshot-0000004-0.100.safetensors run/snapshot-0000008-0.100.safetensors >table
wc -l <table
tail -n 2 table | sed 's/^[0-9. ]*all/all/'
"$phema" diff -v run/snapshot-0000004-0.100.safetensors run/snapshot-0000008-0.100.safetensors | wc -l
# worst first
sed '1d; /^\.\.\./,$d' table | sort -g -r -c -k 1,1 && echo sorted
