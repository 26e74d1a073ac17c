"$phema" gen -q --count 2 run >/dev/null
try() { "$phema" report -q "$@"; echo "status $?"; }
try --sigma-rel 0.1 run
try --sigma-rel 0.1 run -o page.pdf
try --maximize run -o page.html
try --sigma-rel 0.4 run -o page.html
try --scores nowhere.csv run -o page.html
try nowhere -o page.html
touch page.html
try --sigma-rel 0.1 run -o page.html
try --sigma-rel 0.1 run -o page.html --force --json
try --sigma-rel 0.1 run -o no/such/page.html
try "$fixtures/ema_pytorch/snapshots" -o unknown.html
ls
