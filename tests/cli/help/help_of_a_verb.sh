# the three ways to ask for it; wherever the option stands, operands may be missing
"$phema" help convert
"$phema" convert --help | cmp - <("$phema" help convert)
"$phema" convert --at 5 -h | cmp - <("$phema" help convert)
