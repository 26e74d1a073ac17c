/* training.h - trainings of small networks: a task with its optimizer, and a schedule. */
#ifndef BENCH_FIDELITY_TRAINING_H
#define BENCH_FIDELITY_TRAINING_H

#include "network.h"
#include "optimizers.h"
#include "regimes.h"

/* What a minibatch is drawn from. */
struct batch {
    uint64_t *random;
    double data; /* shifts what the examples say; 0: the usual ones */
};

struct task {
    const char *what;
    size_t n_params, n_layers;
    /* Draws the first parameters. Returns the working memory, which begins with the layers, for
     * free(); NULL: there is none. */
    void *(*start)(double *params, uint64_t *random);
    /* The gradient of the loss of a new minibatch. */
    void (*find_gradient)(void *work, double *gradient, const double *params,
                          const struct batch *batch);
    const struct optimizer *optimizer; /* unless the regime has one */
    double weight_decay, rate;
};

/* perceptrons.c */
extern const struct task task_denoiser, task_regression, task_classifier, task_flow;
/* language.c */
extern const struct task task_language, task_attention;

bool training_start(struct movement *movement);
void training_step(struct movement *movement, uint64_t step);
void training_end(struct movement *movement);

#endif
