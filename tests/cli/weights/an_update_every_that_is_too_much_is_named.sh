# The option is wrong, and not the training: EDM2 updates its averages at every step.
{ "$phema" weights -q --update-every 10 --sigma-rel 0.1 "$fixtures/edm2/snapshots" >printed; } 2>&1
"$phema" weights -q --update-every 10 --checks error --sigma-rel 0.1 "$fixtures/edm2/snapshots" 2>&1
