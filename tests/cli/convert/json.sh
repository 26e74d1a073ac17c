# Numbers have 17 digits. The values of gamma 0 and 1 are known exactly enough to check all of them.
"$phema" convert --gamma 1 --at 100 --json
"$phema" convert --gamma 1,0 --json
