"$phema" --version
