"$phema" gen --count 1 run >/dev/null
"$phema" weights run
