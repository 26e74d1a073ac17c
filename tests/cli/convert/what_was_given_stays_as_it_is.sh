# A width comes back as it was written, not as 0.099999999999999992.
"$phema" convert --json --sigma-rel 0.1,0.05 --gamma 6.94 --half-life-rel 0.07 |
    grep -o '"sigma_rel": 0\.[01][05]*,\|"gamma": 6.94,\|"half_life_rel": 0.07}'
