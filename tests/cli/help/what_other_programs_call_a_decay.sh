# Other programs give an exponential average by its decay: the command that is suggested makes it.
"$phema" gen -q --no-sync run >/dev/null
for option in "--decay 0.999" --beta=0.999 "--ema-decay 0.999"; do
    read -ra words <<<"$option"
    "$phema" synth "${words[@]}" run out.safetensors 2>error
    echo "status $?"
    cat error
    command=$(sed -n 's/^  try: posthoc-ema //p' error)
    eval "\"\$phema\" $command -q -f"
done
echo "- a word that is a verb elsewhere"
"$phema" synth help
echo "status $?"
echo "- a copy of what is not there, before anything is solved"
"$phema" synth --sigma-rel 0.1 --into missing.pt run out.pt
echo "status $?"
