# inspect reads no data of tensors, and calls its errors rough. weights samples the data: its error at the same width is
# the one to expect.
"$phema" inspect -q "$fixtures/edm2/snapshots" | grep '^  error'
"$phema" weights -q --sigma-rel 0.0125 "$fixtures/edm2/snapshots" | tail -n 1
