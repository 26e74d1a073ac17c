# There are three ways to ask. Operands may be missing, wherever the option is.
"$phema" help convert
"$phema" convert --help | cmp - <("$phema" help convert)
"$phema" convert --at 5 -h | cmp - <("$phema" help convert)
