# no verb is needed for help, and all three ways print the same
"$phema" --help
"$phema" -h | cmp - <("$phema" --help)
"$phema" help | cmp - <("$phema" --help)
