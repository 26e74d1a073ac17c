// SPDX-License-Identifier: Apache-2.0
/* gram.c - assembles and applies the Gram matrices of the three metrics, scaled to unit diagonal.
 * The entries, and the powers in them, must be right to quad precision: a condition number of 1e17
 * is ordinary here. */
#include "gram.h"

#include <stdlib.h>

#include "gram_closed_form.h"
#include "phema/arena.h"
#include "phema/memory.h"

/* n_rows of row_size entries */
static bool alloc_products(struct phema_products *products, size_t n_rows, size_t row_size,
                           const bool *wanted)
{
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++) {
        if (!wanted[g])
            continue;
        products->with[g] = calloc(n_rows * row_size, sizeof(phema_quad));
        products->self[g] = calloc(n_rows, sizeof(phema_quad));
        if (!products->with[g] || !products->self[g])
            return false;
        phema_memory_will_fill(products->with[g], n_rows * row_size * sizeof(phema_quad));
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

/* White and walk in closed form, motion by sums, side by side. */
struct both {
    struct phema_products closed, summed;
    const struct phema_profile_set *set;
    const struct phema_motion *motion;
};

static enum phema_status find_one_of_both(void *context, size_t index, struct phema_error *err)
{
    struct both *both = context;
    if (index == 1)
        return phema_products_integrate(&both->summed, both->set, both->motion, err);
    return phema_products_find_closed(&both->closed, both->set) ? PHEMA_OK : phema_fail_memory(err);
}

enum phema_status phema_products_find(struct phema_products *products,
                                      const struct phema_profile_set *set,
                                      const struct phema_motion *motion, struct phema_error *err)
{
    bool has_closed = products->with[PHEMA_GRAM_WHITE] || products->with[PHEMA_GRAM_WALK];
    if (!set->is_plain || !has_closed)
        return phema_products_integrate(products, set, motion, err);
    struct both both = {.closed = *products, .summed = *products, .set = set, .motion = motion};
    both.closed.with[PHEMA_GRAM_MOTION] = NULL;
    both.summed.with[PHEMA_GRAM_WHITE] = both.summed.with[PHEMA_GRAM_WALK] = NULL;
    return phema_parallel_try(motion ? 2 : 1, phema_threads_for(set->n), find_one_of_both, &both,
                              err);
}

/* Threads work on blocks of rows; square blocks also fit the cache. */
#define BLOCK ((size_t)16)

static size_t count_blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static size_t end_of_block(size_t n, size_t block)
{
    return (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
}

struct scaling {
    struct phema_gram *gram;
    struct phema_scaled *inverses; /* [n + m] of the lengths */
};

static phema_fixed cosine(const phema_quad *product, struct phema_scaled row,
                          struct phema_scaled column)
{
    struct phema_scaled x;
    if (!phema_scaled_from_quad(&x, product)) /* too long for a quad: counts as equal */
        return PHEMA_FIXED_ONE;
    return phema_fixed_from_scaled(phema_scaled_times(phema_scaled_times(x, row), column));
}

/* Each product becomes a cosine in its own place. */
static void scale_rows(void *context, size_t block)
{
    const struct scaling *scaling = context;
    size_t n = scaling->gram->n;
    for (size_t i = block * BLOCK; i < end_of_block(n, block); i++) {
        phema_fixed *row = scaling->gram->matrix + i * n;
        const phema_quad *products = (const phema_quad *)row;
        row[i] = PHEMA_FIXED_ONE;
        for (size_t j = i + 1; j < n; j++)
            row[j] = cosine(&products[j], scaling->inverses[i], scaling->inverses[j]);
    }
}

/* Copies the upper half to the lower one. */
static void mirror_rows(void *context, size_t block)
{
    const struct scaling *scaling = context;
    size_t n = scaling->gram->n;
    phema_fixed *matrix = scaling->gram->matrix;
    for (size_t left = 0; left <= block * BLOCK; left += BLOCK)
        for (size_t i = block * BLOCK; i < end_of_block(n, block); i++)
            for (size_t j = left; j < i && j < left + BLOCK; j++)
                matrix[i * n + j] = matrix[j * n + i];
}

/* False: no finite length, which counts as 1. */
static bool find_length(phema_quad *length, phema_quad *inverse, struct phema_scaled *scaled,
                        phema_quad self)
{
    bool has_length = self > 0 && self < (phema_quad)INFINITY;
    *length = has_length ? phema_quad_sqrt(self) : 1;
    *inverse = 1 / *length;
    (void)phema_scaled_from_quad(scaled, inverse);
    return has_length;
}

static void scale_products(struct phema_gram *gram, const phema_quad *self,
                           phema_quad *inverse_lengths, struct phema_scaled *inverses)
{
    size_t n = gram->n;
    for (size_t i = 0; i < n + gram->m; i++) {
        bool has_length =
            find_length(&gram->lengths[i], &inverse_lengths[i], &inverses[i], self[i]);
        if (i >= n)
            gram->has_length[i - n] = has_length;
    }
    struct scaling scaling = {gram, inverses};
    phema_parallel(count_blocks(n), phema_threads_for(n), scale_rows, &scaling);
    phema_parallel(count_blocks(n), phema_threads_for(n), mirror_rows, &scaling);
    for (size_t k = 0; k < gram->m; k++)
        for (size_t j = 0; j < n; j++)
            gram->cosines[k * n + j] *= inverse_lengths[n + k] * inverse_lengths[j];
}

/* Reuses the memory of the products, which saves a second matrix for each metric. */
static bool build_gram(struct phema_gram *gram, const struct phema_profile_set *set,
                       struct phema_products *products, enum phema_gram_metric metric)
{
    size_t n = set->n;
    size_t m = set->m;
    *gram = (struct phema_gram){.n = n, .m = m, .set = set, .metric = metric};
    gram->cosines = products->with[metric] + n * n;
    gram->matrix = (phema_fixed *)products->with[metric];
    products->with[metric] = NULL;
    gram->lengths = calloc(n + m + 1, sizeof(*gram->lengths)); /* + 1: never of size 0 */
    gram->has_length = calloc(m + 1, sizeof(*gram->has_length));
    phema_quad *inverse_lengths = calloc(n + m + 1, sizeof(*inverse_lengths));
    struct phema_scaled *inverses = calloc(n + m + 1, sizeof(*inverses));
    bool has_memory = gram->lengths && gram->has_length && inverse_lengths && inverses;
    if (has_memory)
        scale_products(gram, products->self[metric], inverse_lengths, inverses);
    free(inverse_lengths);
    free(inverses);
    return has_memory;
}

enum phema_status phema_fail_solve(size_t n, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory to solve for %zu snapshots", n);
}

/* products: without memory at first; the caller frees what is left of them */
static enum phema_status fill_grams(struct phema_grams *grams, struct phema_products *products,
                                    const struct phema_problem *problem, const bool *wanted,
                                    struct phema_error *err)
{
    struct phema_gram *const all[PHEMA_N_GRAMS] = {&grams->white, &grams->walk, &grams->motion};
    if (!alloc_products(products, problem->n + problem->m, problem->n, wanted))
        return phema_fail_solve(problem->n, err);
    enum phema_status status = phema_products_find(products, &grams->set, problem->motion, err);
    if (status)
        return status;
    for (size_t g = 0; g < PHEMA_N_GRAMS; g++)
        if (wanted[g] && !build_gram(all[g], &grams->set, products, (enum phema_gram_metric)g))
            return phema_fail_solve(problem->n, err);
    return PHEMA_OK;
}

enum phema_status phema_grams_build(struct phema_grams *grams, const struct phema_problem *problem,
                                    bool needs_walk, struct phema_error *err)
{
    const bool wanted[PHEMA_N_GRAMS] = {[PHEMA_GRAM_WHITE] = true,
                                        [PHEMA_GRAM_WALK] = needs_walk || !problem->motion,
                                        [PHEMA_GRAM_MOTION] = problem->motion != NULL};
    *grams = (struct phema_grams){0};
    struct phema_products products = {.reach = SIZE_MAX, .stride = problem->n};
    enum phema_status status = phema_profile_set_build(&grams->set, problem, err);
    if (!status)
        status = fill_grams(grams, &products, problem, wanted, err);
    free_products(&products);
    if (status)
        phema_grams_clear(grams);
    return status;
}

static void clear_gram(struct phema_gram *gram)
{
    free(gram->matrix); /* and the cosines in its block */
    free(gram->lengths);
    free(gram->has_length);
    *gram = (struct phema_gram){0};
}

void phema_grams_clear(struct phema_grams *grams)
{
    clear_gram(&grams->white);
    clear_gram(&grams->walk);
    clear_gram(&grams->motion);
    phema_profile_set_clear(&grams->set);
}

/* Products become cosines in their own places, as in scale_rows. */
static bool scale_band(struct phema_gram_band *band, const struct phema_products *products)
{
    size_t n = band->n;
    struct phema_scaled *inverses = calloc(n, sizeof(*inverses));
    band->lengths = calloc(n, sizeof(*band->lengths));
    for (size_t i = 0; inverses && band->lengths && i < n; i++) {
        phema_quad inverse;
        (void)find_length(&band->lengths[i], &inverse, &inverses[i],
                          products->self[PHEMA_GRAM_MOTION][i]);
    }
    bool has_memory = inverses && band->lengths;
    for (size_t i = 0; has_memory && i < n; i++) {
        phema_fixed *row = band->cosines + i * band->reach;
        const phema_quad *entries = (const phema_quad *)row;
        row[0] = PHEMA_FIXED_ONE;
        for (size_t k = 1; k < band->reach && i + k < n; k++)
            row[k] = cosine(&entries[k], inverses[i], inverses[i + k]);
    }
    free(inverses);
    return has_memory;
}

/* products, set: without memory at first; the caller frees what is left of them */
static enum phema_status fill_band(struct phema_gram_band *band, struct phema_products *products,
                                   struct phema_profile_set *set,
                                   const struct phema_problem *problem, struct phema_error *err)
{
    const bool wanted[PHEMA_N_GRAMS] = {[PHEMA_GRAM_MOTION] = true};
    enum phema_status status = phema_profile_set_build(set, problem, err);
    if (status)
        return status;
    if (!alloc_products(products, band->n, band->reach, wanted))
        return phema_fail_solve(band->n, err);
    status = phema_products_find(products, set, problem->motion, err);
    if (status)
        return status;
    band->cosines = (phema_fixed *)products->with[PHEMA_GRAM_MOTION];
    products->with[PHEMA_GRAM_MOTION] = NULL;
    return scale_band(band, products) ? PHEMA_OK : phema_fail_solve(band->n, err);
}

enum phema_status phema_gram_band_build(struct phema_gram_band *band,
                                        const struct phema_problem *problem, size_t reach,
                                        struct phema_error *err)
{
    *band =
        (struct phema_gram_band){.n = problem->n, .reach = reach < problem->n ? reach : problem->n};
    struct phema_products products = {.reach = band->reach, .stride = band->reach - 1};
    struct phema_profile_set set = {0};
    enum phema_status status = fill_band(band, &products, &set, problem, err);
    phema_profile_set_clear(&set);
    free_products(&products);
    if (status)
        phema_gram_band_clear(band);
    return status;
}

void phema_gram_band_clear(struct phema_gram_band *band)
{
    free(band->cosines);
    free(band->lengths);
    *band = (struct phema_gram_band){0};
}

/* The product of the matrix with numbers in fixed point, or whole ones. */
struct applying {
    const struct phema_gram *gram;
    const phema_fixed *x;
    const int64_t *whole; /* instead; or NULL */
    phema_quad unit;      /* of x */
    phema_quad *out;
};

static void apply_rows(void *context, size_t block)
{
    const struct applying *applying = context;
    size_t n = applying->gram->n;
    for (size_t i = block * BLOCK; i < end_of_block(n, block); i++) {
        const phema_fixed *row = applying->gram->matrix + i * n;
        applying->out[i] = applying->whole ? phema_fixed_dot_whole(row, applying->whole, n)
                                           : applying->unit * phema_fixed_dot(row, applying->x, n);
    }
}

void phema_gram_apply(const struct phema_gram *gram, phema_quad *out, const phema_quad *x,
                      phema_fixed *scratch)
{
    phema_quad unit = phema_fixed_vector(scratch, x, gram->n);
    struct applying applying = {.gram = gram, .x = scratch, .unit = unit, .out = out};
    phema_parallel(count_blocks(gram->n), phema_threads_for(gram->n), apply_rows, &applying);
}

void phema_gram_apply_whole(const struct phema_gram *gram, phema_quad *out, const int64_t *x)
{
    struct applying applying = {.gram = gram, .whole = x, .out = out};
    phema_parallel(count_blocks(gram->n), phema_threads_for(gram->n), apply_rows, &applying);
}

/* With u_i = p_i / |p_i| and x_i = w_i |p_i| / |target|: 1 - 2 x b + x A x. */
enum phema_status phema_gram_error(phema_quad *squared, const struct phema_gram *gram,
                                   size_t target, const double *weights, struct phema_error *err)
{
    size_t n = gram->n;
    struct phema_arena memory = {0};
    phema_quad *x = phema_arena_array(&memory, n, sizeof(*x));
    phema_quad *product = phema_arena_array(&memory, n, sizeof(*product));
    phema_fixed *scratch = phema_arena_array(&memory, n, sizeof(*scratch));
    if (memory.is_failed) {
        phema_arena_clear(&memory);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory for %zu weights", n);
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (phema_quad)weights[i] * gram->lengths[i] / gram->lengths[n + target];
    phema_gram_apply(gram, product, x, scratch);
    phema_quad sum = 1;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * (product[i] - 2 * gram->cosines[target * n + i]);
    *squared = sum > 0 ? sum : 0;
    phema_arena_clear(&memory);
    return PHEMA_OK;
}

bool phema_gram_find_alike(const struct phema_gram *gram, size_t *i, size_t *j)
{
    /* sin^2 <= 1e-30 where the cosine is above 1 - 5e-31 */
    const phema_fixed limit = phema_fixed_from_quad(1 - (phema_quad)5e-31);
    for (*i = 0; *i < gram->n; (*i)++)
        for (*j = 0; *j < *i; (*j)++)
            if (gram->matrix[*i * gram->n + *j] >= limit)
                return true;
    return false;
}
