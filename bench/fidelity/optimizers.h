/* optimizers.h - one step of each. */
#ifndef BENCH_FIDELITY_OPTIMIZERS_H
#define BENCH_FIDELITY_OPTIMIZERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network.h"

#define N_MOMENTS 4

struct stepping {
    double *params, *gradient;  /* [n] */
    double *moments[N_MOMENTS]; /* [n] of the optimizer, 0 at first */
    size_t n, from;             /* parameters before it are frozen */
    const struct dense *layers;
    size_t n_layers;
    void *memory; /* of the optimizer, 0 at first */
    double rate, weight_decay;
    uint64_t step; /* from 1 on */
};

struct optimizer {
    const char *what;
    double rate; /* in units of the task's, which is that of Adam or SGD */
    void (*step)(struct stepping *stepping);
    size_t layer_bytes; /* of its memory, for each layer */
};

extern const struct optimizer optimizer_adam, optimizer_sgd, optimizer_lion, optimizer_muon,
    optimizer_soap, optimizer_schedule_free;

#endif
