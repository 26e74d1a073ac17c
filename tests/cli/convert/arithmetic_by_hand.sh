# gamma 0 is the plain mean: sigma_rel 1/sqrt(12) = 0.28867513, and half of the time has half of the weight.
# gamma 1: sqrt(2)/6 = 0.23570226, 1 - 2^(-1/2) = 0.29289322; at 100: 23.570226, 29.289322,
#   exp(-1/23.570226) = 0.9584610
# gamma 3: 2/(5 sqrt(6)) = 0.16329932, 1 - 2^(-1/4) = 0.15910358
"$phema" convert --gamma 0,1,3 --at 100
# half of the weight in the last 50 of 100 steps: gamma 0; in the last 29.28932188... steps: gamma 1
"$phema" convert --half-life 50,29.289321881345254 --at 100
# beta of gamma 3 at step 100: 0.99^4 = 0.96059601; of gamma 1 at step 2: 1/4
"$phema" convert --beta 0.96059601 --at 100
"$phema" convert --beta 0.25 --at 2
# a half-life of 100 steps: width 100/ln 2 = 144.2695, decay 2^(-1/100) = 0.99309250
"$phema" convert --ema-half-life 100 --at 1000 | cut -c 40-
# half of the weight in the last quarter of the training: 2^(-1/(gamma+1)) = 3/4
"$phema" convert --half-life-rel 0.25
