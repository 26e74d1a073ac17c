# Each misuse is one line, before search makes anything.
"$phema" gen -q --count 2 run >/dev/null
try() { "$phema" search "$@"; echo "status $?"; }
try run
try --exec 'e {}' run
try --exec 'e' --sigma-rel 0.1:0.2 run
try --exec 'e {} | tail' --sigma-rel 0.1:0.2 run
try --exec 'e {}' --sigma-rel 0.2:0.1 run
try --exec 'e {}' --sigma-rel 0.1:0.3 run
try --exec 'e {}' --sigma-rel 0:0.2 run
try --exec 'e {}' --sigma-rel 0.1 run
try --exec 'e {}' --sigma-rel x:0.2 run
try --exec 'e {}' --sigma-rel 0.1,0.2 --coarse 4 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --coarse 1 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --evaluations 5 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --at 2048,4096 --evaluations 7 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --tolerance 0.0001 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --timeout 0 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --noise 0 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --noise inf run
try --exec 'e {}' --sigma-rel 0.1:0.2 --batch 65 run
try --exec 'e {}' --sigma-rel 0.1:0.2 --minimize --maximize run
try --exec 'e {}' --sigma-rel 0.1:0.2 --score-regex '(' run
try --exec 'e {}' --sigma-rel 0.1:0.2 run out.safetensors
try --exec 'e {}' --sigma-rel 0.1:0.2 run 'out/{time}.safetensors'
try --exec 'e {}' --sigma-rel 0.1:0.2 --at 2048,4096 run 'out/{sigma}.safetensors'
try --exec 'e {}' --sigma-rel 0.1:0.2 run '{time}/{sigma}.safetensors'
try --exec 'e {}' --sigma-rel 0.1:0.2 nowhere
try --exec 'true {}' --sigma-rel 0.1:0.2 -q run no/such/directory
ls
