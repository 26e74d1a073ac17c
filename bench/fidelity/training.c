// SPDX-License-Identifier: Apache-2.0
/* training.c - steps of a training: minibatches, the learning rate, what happens meanwhile. */
#include "training.h"

#include <math.h>
#include <stdlib.h>

#include "random.h"
#include "schedules.h"

#define SPIKE_FACTOR 20
#define SPIKE_SHARE  0.0015 /* of the run */
#define OTHER_DATA   0.4

struct training {
    void *work;
    struct stepping stepping;
    double *mean; /* [n] of the gradients of several minibatches */
    uint64_t random;
};

static const struct optimizer *optimizer_of(const struct regime *regime)
{
    return regime->optimizer ? regime->optimizer : regime->task->optimizer;
}

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
    training->mean = calloc(movement->n, sizeof(double));
    struct stepping *stepping = &training->stepping;
    *stepping = (struct stepping){.params = movement->params,
                                  .gradient = calloc(movement->n, sizeof(double)),
                                  .n = movement->n,
                                  .layers = training->work,
                                  .n_layers = task->n_layers,
                                  .weight_decay = task->weight_decay};
    stepping->memory = calloc(task->n_layers, optimizer_of(movement->regime)->layer_bytes + 1);
    bool is_complete = training->work && training->mean && stepping->gradient && stepping->memory;
    for (size_t m = 0; m < N_MOMENTS; m++) {
        stepping->moments[m] = calloc(movement->n, sizeof(double));
        is_complete = is_complete && stepping->moments[m];
    }
    return is_complete;
}

void training_end(struct movement *movement)
{
    struct training *training = movement->state;
    if (training) {
        for (size_t m = 0; m < N_MOMENTS; m++)
            free(training->stepping.moments[m]);
        free(training->stepping.gradient);
        free(training->stepping.memory);
        free(training->mean);
        free(training->work);
    }
    free(training);
    free(movement->params);
}

static double learning_rate(const struct regime *regime, double done)
{
    double rate =
        optimizer_of(regime)->rate * regime->task->rate * schedule_factor(regime->schedule, done);
    bool is_spike = regime->event == EVENT_SPIKE && done >= 0.5 && done < 0.5 + SPIKE_SHARE;
    return is_spike ? SPIKE_FACTOR * rate : rate;
}

/* What an example is drawn from. */
static double find_data(enum event event, double done, uint64_t *random)
{
    if (event == EVENT_STAGE)
        return done < 0.6 ? 0 : OTHER_DATA;
    if (event == EVENT_TARGETS)
        return 0.1 * floor(12 * done);
    if (event != EVENT_MIXTURE || done < 1. / 3)
        return 0;
    return random_unit(random) < (done < 0.7 ? 0.25 : 0.75) ? OTHER_DATA : 0;
}

static size_t count_batches(enum event event, double done)
{
    if (event == EVENT_FULL_BATCH)
        return 8;
    return event != EVENT_BATCHES || done < 0.4 ? 1 : done < 0.7 ? 4 : 16;
}

/* The mean gradient of a step. */
static void find_gradient(struct training *training, const struct regime *regime, double done)
{
    struct stepping *stepping = &training->stepping;
    size_t n_batches = count_batches(regime->event, done);
    for (size_t b = 0; b < n_batches; b++) {
        struct batch batch = {&training->random, find_data(regime->event, done, &training->random)};
        regime->task->find_gradient(training->work, stepping->gradient, stepping->params, &batch);
        for (size_t i = 0; n_batches > 1 && i < stepping->n; i++)
            training->mean[i] = (b ? training->mean[i] : 0) + stepping->gradient[i];
    }
    for (size_t i = 0; n_batches > 1 && i < stepping->n; i++)
        stepping->gradient[i] = training->mean[i] / (double)n_batches;
}

/* To nearest even, as the conversion of a float32 does. */
static double round_bfloat16(double x)
{
    if (x == 0)
        return x;
    int unit = ilogb(x) - 7;
    return ldexp(rint(ldexp(x, -unit)), unit);
}

void training_step(struct movement *movement, uint64_t step)
{
    struct training *training = movement->state;
    struct stepping *stepping = &training->stepping;
    const struct regime *regime = movement->regime;
    double done = ((double)step - 0.5) / (double)movement->n_steps;
    stepping->rate = learning_rate(regime, done);
    stepping->from = regime->event == EVENT_THAW && done < 0.5 ? movement->n / 2 : 0;
    stepping->step = step;
    if (regime->event == EVENT_FULL_BATCH)
        training->random = regime->seed;
    find_gradient(training, regime, done);
    optimizer_of(regime)->step(stepping);
    for (size_t i = 0; regime->event == EVENT_BFLOAT16 && i < movement->n; i++)
        movement->params[i] = round_bfloat16(movement->params[i]);
}
