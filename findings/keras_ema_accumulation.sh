#!/usr/bin/env bash
# Keras' use_ema averages after each batch, also while gradients accumulate and no parameter changes.
#
# With gradient_accumulation_steps=N an optimizer updates the parameters after every N-th batch, and optimizer.iterations counts
# these updates. The average is updated after every batch, N times as often: ema_momentum=m forgets as m^N does by updates. Yet it is
# not that average: just after an update the newest parameters weigh 1 - m, and those before them m (1 - m^N).
# Seen with Keras 3.15.1 and JAX 0.10.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q keras==3.15.1 jax==0.10.2 numpy==2.2.6
KERAS_BACKEND=jax venv/bin/python - <<'END' 2>/dev/null | tee found
import keras, numpy

LAST = 3
for accumulation in (None, 4):
    weight = keras.Variable(numpy.eye(1, LAST + 1)[0])
    steps = keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.9, gradient_accumulation_steps=accumulation)
    steps.build([weight])
    for step in range(1, LAST + 1):  # the parameters after update k are the unit vector k
        for _ in range(accumulation or 1):
            steps.apply([weight.numpy() - numpy.eye(1, LAST + 1, step)[0]], [weight])
    weights = numpy.array(steps._model_variables_moving_average[0])
    print(f"accumulation {accumulation}: {int(steps.iterations)} updates, weights of their parameters:", *(f"{w:.4f}" for w in weights[1:]))
print(f"by updates with the decay 0.9^4, the newest would weigh {1 - 0.9 ** 4:.4f}")
END
diff found - <<'END'
accumulation None: 3 updates, weights of their parameters: 0.8100 0.0900 0.1000
accumulation 4: 3 updates, weights of their parameters: 0.5905 0.3095 0.1000
by updates with the decay 0.9^4, the newest would weigh 0.3439
END
