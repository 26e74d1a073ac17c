"$phema" gen --count 6 --steps 600 run >/dev/null
files() { "$phema" weights -qv --sigma-rel 0.1 "$@" run | grep safetensors | cut -c 16-18 | uniq | tr '\n' ' '; echo; }
files
files --from 200
files --from 201 --to 500
files --every 2
files --every 4
files --last 2
files --to 0.5k --every 2 --last 3
files --last 99
"$phema" weights --sigma-rel 0.1 --from 601 run
