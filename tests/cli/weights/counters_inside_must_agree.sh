exec 2>&1
mkdir edm2 lightning
cp "$fixtures/edm2_state/training-state-0000004.pt" edm2/training-state-0000008.pt
"$phema" weights --sigma-rel 0.07 edm2
echo $?
cp "$fixtures/lightning/stds_emas/epoch=1-step=200.ckpt" "lightning/epoch=1-step=300.ckpt"
"$phema" weights --sigma-rel 0.07 lightning
echo $?
# Other names have their own times.
"$phema" weights -q --sigma-rel 0.07 --name-regex 'epoch=(?<time>[0-9]+)' lightning
# The name must not have a smaller step than the counter.
mkdir less
cp "$fixtures/lightning/stds_emas/epoch=1-step=200.ckpt" "less/epoch=0-step=100.ckpt"
"$phema" weights --sigma-rel 0.07 less
echo $?
