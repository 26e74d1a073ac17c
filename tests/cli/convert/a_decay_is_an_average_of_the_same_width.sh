# The width is -1/ln 0.9999 = 9999.49999 steps. Over 200000 steps this is sigma_rel 0.0499975.
"$phema" convert --decay 0.9999 --at 200k
