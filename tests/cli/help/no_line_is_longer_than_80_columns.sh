for verb in synth weights inspect diff verify gen convert; do
    "$phema" "$verb" --help | awk -v verb="$verb" 'length > 80 {print verb ": " $0}'
done
