exec 2>&1
printf '\200\004}.' >settings.pkl
"$phema" inspect settings.pkl
echo "$?"
