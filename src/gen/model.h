/* model.h - The tensors of the simulated model: a few large ones, more small ones, one scalar. */
#ifndef GEN_MODEL_H
#define GEN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

struct gen_tensor {
    char name[40];
    unsigned rank; /* 0 to 2 */
    uint64_t shape[2];
    uint64_t n_elems;
    double mean, scale;   /* of its elements */
    uint64_t first_param; /* counted over all tensors */
    uint64_t first_run;   /* first run, counted over all tensors */
};

struct gen_model {
    struct gen_tensor *tensors; /* [n + 1]: the last one is empty and holds the totals */
    size_t n;
};

/* n_params in total, n_params >= n > 0. */
PHEMA_FALLIBLE gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                              struct phema_error *err);
void gen_model_clear(struct gen_model *model);

#endif
