exec 2>&1
for shell in bash zsh fish; do
    "$phema" help --completions "$shell" | grep -c 'synth'
done | tr '\n' ' ' | grep -cE '^([1-9][0-9]* ){3}$'
"$phema" help --completions
echo "$?"
"$phema" help --completions tcsh
echo "$?"
