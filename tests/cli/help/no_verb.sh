"$phema"
