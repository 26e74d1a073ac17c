printf '0.1,2\n0.2,1\n' >scores.csv
echo mine >sweep.svg
"$phema" plot sweep scores.csv -o sweep.svg
echo "status $?"
"$phema" plot sweep scores.csv -o a.svg --csv sweep.svg
echo "status $?"
cat sweep.svg; ls
"$phema" plot sweep scores.csv -o sweep.svg --force
head -c 4 sweep.svg; echo
"$phema" plot sweep scores.csv -o missing/a.svg
echo "status $?"
"$phema" plot sweep scores.csv -o b.svg --csv missing/b.csv
echo "status $?"; ls
