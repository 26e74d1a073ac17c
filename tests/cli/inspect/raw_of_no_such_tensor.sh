"$phema" inspect --raw --tensor conv.wieght "$fixtures/torch/plain.pt"
