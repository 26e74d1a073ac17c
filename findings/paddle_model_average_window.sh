#!/usr/bin/env bash
# Paddle's ModelAverage with max_average_window=4 averages 4, 5, 6 and 7 steps in turn.
#
# Its documentation has a sliding window whose length cannot exceed max_average_window, and a sum that is set to 0 when the window
# is full. One would guess an average of the last 4 steps, or of 1 to 4. The sum of the last full window stays in the average
# until the next is full. The average reaches back by up to 7 steps, and loses 4 of them at once. So two checkpoints of it, a step
# apart, can be averages of 7 steps and of 4.
# Seen with paddlepaddle 3.3.1 (1 GB with what it needs).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q paddlepaddle==3.3.1 numpy==2.2.6
venv/bin/python - <<'END' 2>/dev/null | tee found
import numpy, paddle
from paddle.incubate import ModelAverage

LAST = 13
model = paddle.nn.Linear(LAST, 1, bias_attr=False)
average = ModelAverage(1.0, parameters=model.parameters(), min_average_window=4, max_average_window=4)
for step in range(1, LAST + 1):  # the parameters after step k are the unit vector k: an average is the list of its weights
    model.weight.set_value(numpy.eye(LAST, dtype="f4")[:, step - 1 : step])
    model(paddle.zeros([1, LAST])).sum().backward()
    average.step()
    with average.apply(need_restore=True):
        weights = model.weight.numpy()[:, 0]
    steps = numpy.flatnonzero(weights) + 1
    print(f"step {step}: average of {steps.size} steps, {steps[0]} to {steps[-1]}, weights {weights[steps - 1].min():.3f} to {weights.max():.3f}")
END
diff found - <<'END'
step 1: average of 1 steps, 1 to 1, weights 1.000 to 1.000
step 2: average of 2 steps, 1 to 2, weights 0.500 to 0.500
step 3: average of 3 steps, 1 to 3, weights 0.333 to 0.333
step 4: average of 4 steps, 1 to 4, weights 0.250 to 0.250
step 5: average of 5 steps, 1 to 5, weights 0.200 to 0.200
step 6: average of 6 steps, 1 to 6, weights 0.167 to 0.167
step 7: average of 7 steps, 1 to 7, weights 0.143 to 0.143
step 8: average of 4 steps, 5 to 8, weights 0.250 to 0.250
step 9: average of 5 steps, 5 to 9, weights 0.200 to 0.200
step 10: average of 6 steps, 5 to 10, weights 0.167 to 0.167
step 11: average of 7 steps, 5 to 11, weights 0.143 to 0.143
step 12: average of 4 steps, 9 to 12, weights 0.250 to 0.250
step 13: average of 5 steps, 9 to 13, weights 0.200 to 0.200
END
