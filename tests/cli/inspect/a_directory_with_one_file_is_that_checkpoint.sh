mkdir model
cp "$fixtures/torch/single_tensor.pt" model/pytorch_model.pt
"$phema" inspect model
