// SPDX-License-Identifier: Apache-2.0
/* training.c - the optimizers. */
#include "training.h"

#include <math.h>
#include <stdlib.h>

#include "schedules.h"

#define SPIKE_FACTOR 20
#define SPIKE_SHARE  0.0015 /* of the run */

struct training {
    void *work;
    double *gradient, *first, *second; /* [n] the gradient and its moments */
    uint64_t random;
};

bool training_start(struct movement *movement)
{
    const struct task *task = movement->regime->task;
    struct training *training = calloc(1, sizeof(*training));
    movement->state = training;
    movement->n = task->n_params;
    movement->params = calloc(movement->n, sizeof(double));
    if (!training || !movement->params)
        return false;
    training->random = movement->regime->seed;
    training->work = task->start(movement->params, &training->random);
    training->gradient = calloc(movement->n, sizeof(double));
    training->first = calloc(movement->n, sizeof(double));
    training->second = calloc(movement->n, sizeof(double));
    return training->work && training->gradient && training->first && training->second;
}

void training_end(struct movement *movement)
{
    struct training *training = movement->state;
    if (training) {
        free(training->work);
        free(training->gradient);
        free(training->first);
        free(training->second);
    }
    free(training);
    free(movement->params);
}

static double learning_rate(const struct regime *regime, double done)
{
    double rate = regime->task->rate * schedule_factor(regime->schedule, done);
    bool is_spike = regime->event == EVENT_SPIKE && done >= 0.5 && done < 0.5 + SPIKE_SHARE;
    return is_spike ? SPIKE_FACTOR * rate : rate;
}

/* from: parameters before it are frozen */
static void step_adam(struct movement *movement, size_t from, double rate, uint64_t step)
{
    struct training *training = movement->state;
    double decay = movement->regime->task->weight_decay;
    double grown[2] = {1 - pow(0.9, (double)step), 1 - pow(0.99, (double)step)};
    for (size_t i = from; i < movement->n; i++) {
        double slope = training->gradient[i], *param = &movement->params[i];
        training->first[i] += 0.1 * (slope - training->first[i]);
        training->second[i] += 0.01 * (slope * slope - training->second[i]);
        double along = training->first[i] / grown[0];
        *param -= rate * decay * *param;
        *param -= rate * along / (sqrt(training->second[i] / grown[1]) + 1e-8);
    }
}

static void step_sgd(struct movement *movement, size_t from, double rate)
{
    struct training *training = movement->state;
    for (size_t i = from; i < movement->n; i++) {
        training->first[i] = 0.9 * training->first[i] + training->gradient[i];
        movement->params[i] -= rate * training->first[i];
    }
}

void training_step(struct movement *movement, uint64_t step)
{
    struct training *training = movement->state;
    const struct regime *regime = movement->regime;
    double done = ((double)step - 0.5) / (double)movement->n_steps;
    double rate = learning_rate(regime, done);
    size_t from = regime->event == EVENT_THAW && done < 0.5 ? movement->n / 2 : 0;
    regime->task->find_gradient(training->work, training->gradient, movement->params,
                                &training->random);
    if (regime->task->is_adam)
        step_adam(movement, from, rate, step);
    else
        step_sgd(movement, from, rate);
}
