# epochs from 0 on are a series, as processes of torch_checkpointing are not
mkdir run
cp "$fixtures/torch/plain.pt" run/epoch_0.pt
cp "$fixtures/torch/plain.pt" run/epoch_1.pt
"$phema" inspect run
"$phema" inspect --name-regex 'epoch_(?<time>[0-9]+)' run
