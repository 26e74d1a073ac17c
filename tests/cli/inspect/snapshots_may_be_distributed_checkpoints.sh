# Each snapshot is a directory whose name has time and width.
for snapshot in snapshot-0001000-0.050 snapshot-0001000-0.100 snapshot-0002000-0.050; do
    mkdir -p "run/$snapshot"
    cp -r "$fixtures/dcp/two_ranks/." "run/$snapshot"
done
"$phema" inspect run
"$phema" inspect run/snapshot-0001000-0.050
"$phema" weights --sigma-rel 0.07 run
"$phema" diff run/snapshot-0001000-0.050 run/snapshot-0002000-0.050
