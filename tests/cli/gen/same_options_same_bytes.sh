# The hash is the same on every machine: gen uses only integer arithmetic and IEEE +, -, *, sqrt and fma.
"$phema" gen --count 3 --steps 100 --dtype f16 --truth 0.2 --seed 7 a >/dev/null
PHEMA_CPU=ref "$phema" gen -j 1 --no-sync --count 3 --steps 100 --dtype f16 --truth 0.2 --seed 7 b >/dev/null
"$phema" gen -j 3 --count 3 --steps 100 --dtype f16 --truth 0.2 --seed 7 c >/dev/null
diff -r a b && diff -r a c && echo same
(cd a && find . -type f | sort | xargs sha256sum | sha256sum)
"$phema" gen --count 3 --steps 100 --dtype f16 --truth 0.2 --seed 8 d >/dev/null
cmp -s a/truth/truth-0000100-0.200.safetensors d/truth/truth-0000100-0.200.safetensors || echo different
