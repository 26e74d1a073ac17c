exec 2>&1
"$phema" inspect "$fixtures/refuse/custom_module.pt"
echo "$?"
"$phema" inspect --allow-global __main__.Stranger "$fixtures/refuse/custom_module.pt"
echo "$?"
"$phema" inspect --allow-global __main__.Other "$fixtures/refuse/custom_module.pt" >/dev/null
echo "$?"
