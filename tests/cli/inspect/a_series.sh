"$phema" gen --count 2 --steps 100 run >/dev/null
"$phema" inspect run
"$phema" inspect -q --json run | sed "/\"total\"/d"
