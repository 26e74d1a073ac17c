"$phema" inspect "$fixtures/dcp/two_ranks"
"$phema" inspect --json "$fixtures/dcp/two_ranks/.metadata"
# The tensor is split by columns over two files and comes out in C order: BF16 [4, 6].
"$phema" inspect --tensor model.by_column --raw "$fixtures/dcp/two_ranks" | sha256sum
