# KIMG 2147 is 2097 * 1024 = 2147328 images, rounded down; KIMG 2147483 is 2^31 images.
touch network-snapshot-0002147-0.{050,100}.pkl network-snapshot-2147483-0.{050,100}.pkl
touch phema-0002147-0.070.pkl network-snapshot-latest.pkl
"$phema" weights --sigma-rel 0.13 .
"$phema" weights -q --json --sigma-rel 0.13 --at 2147 . | grep -o '"time": [0-9]*'
