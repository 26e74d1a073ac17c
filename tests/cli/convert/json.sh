# 17 digits: 0.25 and what is known of gamma 1 exactly enough
"$phema" convert --gamma 1 --at 100 --json
"$phema" convert --gamma 1,0 --json
