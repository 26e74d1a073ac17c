/* training.h - trainings of small networks: a task with its optimizer, and a schedule. */
#ifndef BENCH_FIDELITY_TRAINING_H
#define BENCH_FIDELITY_TRAINING_H

#include "regimes.h"

struct task {
    const char *what;
    size_t n_params;
    /* Draws the first parameters. Returns the working memory, for free(); NULL: there is none. */
    void *(*start)(double *params, uint64_t *random);
    /* The gradient of the loss of a new minibatch. */
    void (*find_gradient)(void *work, double *gradient, const double *params, uint64_t *random);
    bool is_adam; /* Adam with (0.9, 0.99), or SGD with momentum 0.9 */
    double weight_decay;
    double rate;
};

/* perceptrons.c */
extern const struct task task_denoiser, task_regression, task_classifier;
/* language.c */
extern const struct task task_language, task_attention;

bool training_start(struct movement *movement);
void training_step(struct movement *movement, uint64_t step);
void training_end(struct movement *movement);

#endif
