// SPDX-License-Identifier: Apache-2.0
/* gram.c - Gram matrices, scaled to unit diagonal; those of power functions in closed form
 * (arXiv:2312.02696, appendix C.3, for the white metric). The entries must be right to quad
 * precision, the powers in them included: a condition number of 1e17 is ordinary here. */
#include "gram.h"

#include <stdlib.h>

/* A B/(A+B-1) (ta/tb)^(B-1) / tb */
phema_quad phema_white_term(phema_quad a_power, phema_quad b_power)
{
    return a_power * b_power / (a_power + b_power - 1);
}

phema_quad phema_white_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                               phema_quad decay)
{
    return phema_white_term(a_power, b_power) * decay / ta;
}

/* ta (1 - 1/(A+1) - r/(B+1) + r/(A+B+1)) with r the decay; the last two terms over one denominator,
 * since they nearly cancel for large A */
struct phema_walk_terms phema_walk_terms(phema_quad a_power, phema_quad b_power)
{
    return (struct phema_walk_terms){a_power / (a_power + 1),
                                     a_power / ((b_power + 1) * (a_power + b_power + 1))};
}

phema_quad phema_walk_product(phema_quad a_power, phema_quad b_power, phema_quad ta,
                              phema_quad decay)
{
    struct phema_walk_terms terms = phema_walk_terms(a_power, b_power);
    return ta * (terms.begun - decay * terms.lost);
}

static bool alloc_products(struct phema_products *products, size_t n, size_t m, const bool *wanted)
{
    *products = (struct phema_products){0};
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!wanted[g])
            continue;
        products->with[g] = calloc((n + m) * n, sizeof(phema_quad));
        products->self[g] = calloc(n + m, sizeof(phema_quad));
        if (!products->with[g] || !products->self[g])
            return false;
    }
    return true;
}

static void free_products(struct phema_products *products)
{
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        free(products->with[g]);
        free(products->self[g]);
    }
}

static void clear_gram(struct phema_gram *gram)
{
    free(gram->matrix);
    free(gram->cosines);
    free(gram->lengths);
    free(gram->has_length);
    *gram = (struct phema_gram){0};
}

static void scale_products(struct phema_gram *gram, const phema_quad *products,
                           const phema_quad *self, phema_quad *inverse_lengths)
{
    size_t n = gram->n;
    for (size_t i = 0; i < n + gram->m; i++) {
        bool has_length = self[i] > 0 && self[i] < (phema_quad)INFINITY;
        gram->lengths[i] = has_length ? phema_quad_sqrt(self[i]) : 1;
        inverse_lengths[i] = 1 / gram->lengths[i];
        if (i >= n)
            gram->has_length[i - n] = has_length;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            phema_quad cosine = products[i * n + j] * inverse_lengths[i] * inverse_lengths[j];
            gram->matrix[i * n + j] = phema_fixed_from_quad(cosine);
            gram->matrix[j * n + i] = gram->matrix[i * n + j];
        }
        gram->matrix[i * n + i] = PHEMA_FIXED_ONE;
    }
    for (size_t k = 0; k < gram->m; k++) {
        const phema_quad *row = products + (n + k) * n;
        for (size_t j = 0; j < n; j++)
            gram->cosines[k * n + j] = row[j] * inverse_lengths[n + k] * inverse_lengths[j];
    }
}

static bool build_gram(struct phema_gram *gram, const struct phema_set *set,
                       const struct phema_products *products, enum phema_gram_metric metric)
{
    size_t n = set->n;
    size_t m = set->m;
    *gram = (struct phema_gram){.n = n, .m = m, .set = set, .metric = metric};
    gram->matrix = calloc(n * n + 1, sizeof(*gram->matrix)); /* + 1: never of size 0 */
    gram->cosines = calloc(m * n + 1, sizeof(*gram->cosines));
    gram->lengths = calloc(n + m + 1, sizeof(*gram->lengths));
    gram->has_length = calloc(m + 1, sizeof(*gram->has_length));
    phema_quad *inverse_lengths = calloc(n + m + 1, sizeof(*inverse_lengths));
    bool has_memory =
        gram->matrix && gram->cosines && gram->lengths && gram->has_length && inverse_lengths;
    if (has_memory)
        scale_products(gram, products->with[metric], products->self[metric], inverse_lengths);
    free(inverse_lengths);
    return has_memory;
}

enum phema_status phema_grams_build(struct phema_grams *grams, const struct phema_problem *problem,
                                    bool needs_walk, struct phema_error *err)
{
    *grams = (struct phema_grams){0};
    enum phema_status status = phema_set_build(&grams->set, problem, err);
    if (status)
        return status;

    struct phema_gram *const all[PHEMA_N_GRAMS] = {&grams->white, &grams->walk, &grams->motion};
    const bool wanted[PHEMA_N_GRAMS] = {[PHEMA_GRAM_WHITE] = true,
                                        [PHEMA_GRAM_WALK] = needs_walk || !problem->motion,
                                        [PHEMA_GRAM_MOTION] = problem->motion != NULL};
    struct phema_products products;
    bool has_memory = alloc_products(&products, problem->n, problem->m, wanted);
    if (has_memory)
        status = phema_products_find(&products, &grams->set, problem->motion, err);
    for (size_t g = 0; has_memory && !status && g < PHEMA_N_GRAMS; g++)
        if (wanted[g])
            has_memory = build_gram(all[g], &grams->set, &products, (enum phema_gram_metric)g);
    if (!has_memory)
        status =
            phema_fail(err, PHEMA_ERR_RESOURCE, "no memory to solve for %zu snapshots", problem->n);
    if (status)
        phema_grams_clear(grams);
    free_products(&products);
    return status;
}

void phema_grams_clear(struct phema_grams *grams)
{
    clear_gram(&grams->white);
    clear_gram(&grams->walk);
    clear_gram(&grams->motion);
    phema_set_clear(&grams->set);
}

void phema_gram_apply(const struct phema_gram *gram, phema_quad *out, const phema_quad *x,
                      phema_fixed *scratch)
{
    size_t n = gram->n;
    phema_quad unit = phema_fixed_vector(scratch, x, n);
    for (size_t i = 0; i < n; i++)
        out[i] = unit * phema_fixed_dot(gram->matrix + i * n, scratch, n);
}

/* With u_i = p_i / |p_i| and x_i = w_i |p_i| / |target|: 1 - 2 x b + x A x. */
enum phema_status phema_gram_error(phema_quad *squared, const struct phema_gram *gram,
                                   size_t target, const double *weights, struct phema_error *err)
{
    size_t n = gram->n;
    phema_quad *x = calloc(n, sizeof(*x));
    phema_quad *product = calloc(n, sizeof(*product));
    phema_fixed *scratch = calloc(n, sizeof(*scratch));
    enum phema_status status = PHEMA_OK;
    if (!x || !product || !scratch) {
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for %zu weights", n);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (phema_quad)weights[i] * gram->lengths[i] / gram->lengths[n + target];
    phema_gram_apply(gram, product, x, scratch);
    phema_quad sum = 1;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * (product[i] - 2 * gram->cosines[target * n + i]);
    *squared = sum > 0 ? sum : 0;

done:
    free(x);
    free(product);
    free(scratch);
    return status;
}

bool phema_gram_find_alike(const struct phema_gram *gram, size_t *i, size_t *j)
{
    /* sin^2 <= 1e-30 where the cosine is above 1 - 5e-31 */
    const phema_fixed limit = phema_fixed_from_quad(1 - (phema_quad)5e-31);
    for (*i = 0; *i < gram->n; (*i)++) {
        for (*j = 0; *j < *i; (*j)++) {
            if (gram->matrix[*i * gram->n + *j] >= limit)
                return true;
        }
    }
    return false;
}
