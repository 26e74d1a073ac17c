#!/usr/bin/env bash
# Paddle's conversion to float8_e4m3fn makes 448 of NaN, on the CPU.
#
# The dtype has a code for NaN, and ml_dtypes keeps it. One would guess the same of Paddle, perhaps with numbers that are too
# large limited to 448, the largest one. Paddle makes 448 of NaN as well. A checkpoint that diverged has only finite values after
# it, and a search for NaN finds none. NaN in float8_e5m2 or bfloat16 stays NaN.
# Seen with paddlepaddle 3.3.1 (1 GB with what it needs) and ml_dtypes 0.6.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q paddlepaddle==3.3.1 ml_dtypes==0.6.0 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import ml_dtypes, numpy, paddle

values = numpy.array([1, 464, 500, numpy.inf, numpy.nan], "f4")
print("float32:", values.tolist())
for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16"):
    by_paddle = paddle.to_tensor(values).astype(name).astype("float32").tolist()
    print(f"{name}: Paddle {by_paddle}, ml_dtypes {values.astype(getattr(ml_dtypes, name)).astype('f4').tolist()}")
END
diff found - <<'END'
float32: [1.0, 464.0, 500.0, inf, nan]
float8_e4m3fn: Paddle [1.0, 448.0, 448.0, 448.0, 448.0], ml_dtypes [1.0, 448.0, nan, nan, nan]
float8_e5m2: Paddle [1.0, 448.0, 512.0, 57344.0, nan], ml_dtypes [1.0, 448.0, 512.0, inf, nan]
bfloat16: Paddle [1.0, 464.0, 500.0, inf, nan], ml_dtypes [1.0, 464.0, 500.0, inf, nan]
END
