# arXiv:2312.02696, section 3.2: sigma_rel 0.05 and 0.10 are gamma 16.97 and 6.94
"$phema" convert --sigma-rel 0.05,0.10
"$phema" convert --sigma-rel 0.05,0.10 --json |
    sed -n 's/.*"gamma": \([0-9.]*\).*/\1/p' | xargs printf '%.2f\n'
"$phema" convert --gamma 16.97,6.94 --json |
    sed -n 's/.*"sigma_rel": \([0-9.]*\).*/\1/p' | xargs printf '%.4f\n'
