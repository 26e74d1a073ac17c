#!/usr/bin/env bash
# numpy.mean of 1000 bfloat16 checkpoints gives less than half of their mean.
#
# NumPy documents that it averages float16 in float32. One would guess the same of bfloat16, a dtype of ml_dtypes, as JAX does.
# NumPy adds bfloat16 in bfloat16, one checkpoint after the other. A sum of values near 1 stops at 256, where the next value is
# half a step or less. With 100 checkpoints means are already off by up to 8 steps. With dtype="f4" they are right.
# Seen with NumPy 2.2.6, ml_dtypes 0.6.0 and JAX 0.10.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q numpy==2.2.6 ml_dtypes==0.6.0 jax==0.10.2 jaxlib==0.10.2
venv/bin/python - <<'END' 2>/dev/null | tee found
import jax.numpy as jnp, ml_dtypes, numpy

STEP = 2.0**-7  # of bfloat16 between 1 and 2
draw = numpy.random.default_rng(0)
for count in (10, 30, 100, 1000):
    checkpoints = draw.uniform(1, 1.2, (count, 1000)).astype(ml_dtypes.bfloat16)
    right = checkpoints.astype("f8").mean(axis=0)
    means = {
        "NumPy": numpy.mean(checkpoints, axis=0),
        "NumPy with dtype=f4": numpy.mean(checkpoints, axis=0, dtype="f4"),
        "JAX": numpy.asarray(jnp.mean(jnp.asarray(checkpoints), axis=0)),
        "NumPy of float16": numpy.mean(checkpoints.astype("f2"), axis=0),
    }
    off = (f"{name} {abs(mean.astype('f8') - right).max() / STEP:.0f}" for name, mean in means.items())
    print(f"{count} checkpoints: largest errors in steps:", ", ".join(off))
print(f"mean of the right means {right.mean():.2f}, of NumPy's {means['NumPy'].astype('f8').mean():.2f}")
END
diff found - <<'END'
10 checkpoints: largest errors in steps: NumPy 2, NumPy with dtype=f4 0, JAX 0, NumPy of float16 0
30 checkpoints: largest errors in steps: NumPy 2, NumPy with dtype=f4 0, JAX 0, NumPy of float16 0
100 checkpoints: largest errors in steps: NumPy 8, NumPy with dtype=f4 0, JAX 0, NumPy of float16 0
1000 checkpoints: largest errors in steps: NumPy 76, NumPy with dtype=f4 0, JAX 0, NumPy of float16 0
mean of the right means 1.10, of NumPy's 0.51
END
