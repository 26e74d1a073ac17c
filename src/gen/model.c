// SPDX-License-Identifier: Apache-2.0
/* model.c - The tensors that a simulated training fills. */
#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train.h"

/* Tensors alternate between weight and bias; with three or more the last is the scalar. */
static bool is_scalar(const struct gen_model *model, size_t i)
{
    return model->n >= 3 && i == model->n - 1;
}

static uint64_t share_of(const struct gen_model *model, size_t i)
{
    if (is_scalar(model, i))
        return 0;
    return i % 2 ? 1 : 64 + 64 * (i / 2 % 3);
}

/* Every tensor gets one parameter and its share of the rest. Sizes of weights are multiples of 16,
 * so that they make matrices. The first bias gets the remainder. */
static void share_out(struct gen_model *model, uint64_t n_params)
{
    uint64_t rest = n_params - model->n, left = rest, shares = 0;
    for (size_t i = 0; i < model->n; i++)
        shares += share_of(model, i);
    for (size_t i = 0; i < model->n; i++) {
        /* below 2^50 * 2^8 */
        uint64_t more =
            rest / shares * share_of(model, i) + rest % shares * share_of(model, i) / shares;
        if (i % 2 == 0 && !is_scalar(model, i) && more >= 256)
            more = more / 16 * 16 - 1;
        model->tensors[i].n_elems = 1 + more;
        left -= more;
    }
    model->tensors[model->n > 1 ? 1 : 0].n_elems += left;
}

/* Makes the matrix as square as a side of at most 1024 allows; a vector when no side divides it. */
static void shape_matrix(struct gen_tensor *tensor)
{
    uint64_t rows = 1024;
    while (rows > 1 && (rows > tensor->n_elems / rows || tensor->n_elems % rows))
        rows--;
    tensor->rank = rows > 1 ? 2 : 1;
    tensor->shape[0] = rows > 1 ? rows : tensor->n_elems;
    tensor->shape[1] = rows > 1 ? tensor->n_elems / rows : 0;
}

static void fill_tensor(const struct gen_model *model, size_t i)
{
    struct gen_tensor *tensor = &model->tensors[i];
    if (is_scalar(model, i)) {
        (void)snprintf(tensor->name, sizeof(tensor->name), "gain");
        tensor->mean = 1;
        tensor->scale = 0.1;
        return;
    }
    bool is_bias = i % 2;
    (void)snprintf(tensor->name, sizeof(tensor->name), "blocks.%zu.%s", i / 2,
                   is_bias ? "bias" : "weight");
    if (is_bias) {
        tensor->rank = 1;
        tensor->shape[0] = tensor->n_elems;
        tensor->scale = 0.02;
        return;
    }
    shape_matrix(tensor);
    /* as in initialisations: 1 / sqrt(inputs of a neuron) */
    tensor->scale = 1 / sqrt((double)tensor->shape[tensor->rank - 1]);
}

enum phema_status gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                                 struct phema_error *err)
{
    model->n = (size_t)n;
    model->tensors = calloc(n + 1, sizeof(*model->tensors));
    if (!model->tensors)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for %" PRIu64 " tensors", n);
    share_out(model, n_params);
    for (size_t i = 0; i < model->n; i++) {
        struct gen_tensor *tensor = &model->tensors[i];
        fill_tensor(model, i);
        uint64_t n_runs = (tensor->n_elems + GEN_RUN_ELEMS - 1) / GEN_RUN_ELEMS;
        tensor[1].first_param = tensor->first_param + tensor->n_elems;
        tensor[1].first_run = tensor->first_run + n_runs;
    }
    return PHEMA_OK;
}

void gen_model_clear(struct gen_model *model)
{
    free(model->tensors);
    model->tensors = NULL;
}
