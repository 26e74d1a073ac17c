# SPDX-License-Identifier: Apache-2.0
"""examples/digits.py with few steps and samples: a score for each width, and the picture of them.

    tests/python/test_digits.py PROGRAM LIBRARY
"""
import csv
import math
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:3])


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True, **options).stdout


def main():
    environment = {**os.environ, "POSTHOC_EMA_LIBRARY": LIBRARY, "PYTHONPATH": str(SOURCE / "python")}
    with tempfile.TemporaryDirectory() as directory:
        in_it = {"cwd": directory, "env": environment}
        print(run(sys.executable, str(SOURCE / "examples/digits.py"), "run", "scores.csv", "--steps", "160", "--samples", "200",
                  stderr=subprocess.DEVNULL, **in_it), end="")
        with open(os.path.join(directory, "scores.csv"), encoding="ascii") as file:
            scores = [float(row["score"]) for row in csv.DictReader(file)]
        assert len(scores) == 27 and all(math.isfinite(score) and score > 0 for score in scores), scores
        assert len(set(scores)) > 20, "the averages do not differ: %s" % scores
        run(PROGRAM, "plot", "sweep", "-q", "scores.csv", "-o", "digits.svg", **in_it)
        assert "<svg" in pathlib.Path(directory, "digits.svg").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
