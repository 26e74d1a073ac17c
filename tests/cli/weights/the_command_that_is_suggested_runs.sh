# The defaults of a library may be wrong for these files, but the suggested command must run. With
# update_every 100 several snapshots of 300 steps are the same average; the series keeps the newest.
for library in ema_pytorch posthoc_ema; do
    cp -r "$fixtures/$library/snapshots" $library
    command=$("$phema" weights --sigma-rel 0.2 $library 2>&1 | sed -n 's/^ *try: posthoc-ema //p')
    echo "$command"
    eval "\"\$phema\" $command -v" 2>err | awk '/pt / && $NF != 0 { print $1 }'
    grep -o '[0-9]* snapshots* left out that repeats* another' err || echo 'none repeats another'
done
