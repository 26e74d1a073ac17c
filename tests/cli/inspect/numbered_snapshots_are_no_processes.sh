# epochs are a series, as processes of torch_checkpointing are not; epoch 0 would be before the training
mkdir run
cp "$fixtures/torch/plain.pt" run/epoch_0.pt
cp "$fixtures/torch/plain.pt" run/epoch_1.pt
cp "$fixtures/torch/plain.pt" run/epoch_2.pt
"$phema" inspect run
"$phema" inspect --name-regex 'epoch_(?<time>[0-9]+)' run
