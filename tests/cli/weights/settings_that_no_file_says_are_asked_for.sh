# For both libraries: without both options, with one, and then with the command that the message prints.
exec 2>&1
for library in ema_pytorch posthoc_ema; do
    ln -s "$fixtures/$library/snapshots" "$library"
    "$phema" weights --sigma-rel 0.1 $library
    echo "$?"
    "$phema" weights --sigma-rel 0.1 --input-sigma 0.05,0.28 $library
    echo "$?"
    "$phema" weights $library --update-every 5 --sigma-rel 0.1
    echo "$?"
done
command=$("$phema" weights -q --sigma-rel 0.1 posthoc_ema 2>&1 | sed -n 's/^  try: //p')
posthoc-ema() { "$phema" "$@"; }
eval "$command" | wc -l
echo "${PIPESTATUS[0]}"
