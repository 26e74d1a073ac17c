/* tensors.h - the tensors of the simulated model: a few large ones, more small ones, one scalar. */
#ifndef GEN_TENSORS_H
#define GEN_TENSORS_H

#include "phema/error.h"
#include "phema/span.h"

struct gen_tensor {
    char name[40];
    unsigned rank; /* 0 to 2 */
    uint64_t shape[2];
    uint64_t n_elems;
    double mean, scale;   /* of its elements */
    uint64_t first_param; /* of all tensors' */
    uint64_t first_run;   /* the runs (train.h) of all tensors, one after another */
};

struct gen_model {
    struct gen_tensor *tensors; /* [n + 1]: the last one is empty and holds the totals */
    size_t n;
};

/* n_params in all, n_params >= n > 0. */
PHEMA_FALLIBLE gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                              struct phema_error *err);
void gen_model_clear(struct gen_model *model);

#endif
