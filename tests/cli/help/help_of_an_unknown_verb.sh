"$phema" help sinth
