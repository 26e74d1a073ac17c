for verb in synth join weights inspect diff verify gen convert; do
    "$phema" "$verb" --help | sed -n '1,/^$/p; /^Examples/,/^$/p'
done
