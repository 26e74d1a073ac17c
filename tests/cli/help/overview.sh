# Help needs no verb, and all three ways print the same text.
"$phema" --help
"$phema" -h | cmp - <("$phema" --help)
"$phema" help | cmp - <("$phema" --help)
