// SPDX-License-Identifier: Apache-2.0
/* mpfr_system.c - see mpfr_system.h. The only file that knows MPFR. It ends the program where it
 * finds no memory: so the numbers are allocated here, and there has to be room for what else it
 * needs. */
#include "mpfr_system.h"

#include <mpfr.h>
#include <stdlib.h>

#include "phema/memory.h"

#define BITS 256

/* More than MPFR allocates by itself, for a logarithm and an exponential at a time. */
#define MPFR_BYTES ((uint64_t)1 << 20)

#define HARMLESS_SUM                                                                               \
    ((phema_quad)1e3) /* of |weights|: rounding them moves the profile by 1e-13                    \
                       */

struct triangle {        /* the Cholesky factor of the Gram matrix in some order of the snapshots */
    mpfr_t *entries;     /* lower triangle, packed by rows */
    const size_t *order; /* [n] */
    bool is_walk;
};

struct phema_wide {
    const struct phema_profile_set *set; /* borrowed */
    bool is_walk;                        /* the metric it solves in */
    mpfr_t *kept;                        /* [n_families x n_times] (t / last time)^power */
    mpfr_t *powers;                      /* [n_families] */
    mpfr_t *times;                       /* [n_times] */
    size_t *order;                       /* [n] as they come */
    struct triangle factor;
    mpfr_t *side; /* [n] */
    mpfr_t term, other;
};

/* In one block, so that none of them is allocated by MPFR; 0, or NULL. */
static mpfr_t *make_numbers(size_t count)
{
    size_t bytes = mpfr_custom_get_size(BITS);
    mpfr_t *numbers = calloc(count + 1, sizeof(*numbers) + bytes); /* never of size 0 */
    if (!numbers)
        return NULL;
    char *digits = (char *)(numbers + count + 1);
    for (size_t i = 0; i < count; i++)
        mpfr_custom_init_set(numbers[i], MPFR_ZERO_KIND, 0, BITS, digits + i * bytes);
    return numbers;
}

/* 113 bits are three doubles */
static void set_quad(mpfr_t out, phema_quad x)
{
    double first = (double)x;
    double second = (double)(x - (phema_quad)first);
    double third = (double)(x - (phema_quad)first - (phema_quad)second);
    mpfr_set_d(out, first, MPFR_RNDN);
    mpfr_add_d(out, out, second, MPFR_RNDN);
    mpfr_add_d(out, out, third, MPFR_RNDN);
}

static phema_quad get_quad(mpfr_t x, mpfr_t scratch)
{
    phema_quad sum = 0;
    mpfr_set(scratch, x, MPFR_RNDN);
    for (int part = 0; part < 3; part++) {
        double piece = mpfr_get_d(scratch, MPFR_RNDN);
        sum += (phema_quad)piece;
        mpfr_sub_d(scratch, scratch, piece, MPFR_RNDN);
    }
    return sum;
}

static mpfr_t *entry(const struct triangle *triangle, size_t i, size_t j)
{
    return &triangle->entries[i * (i + 1) / 2 + j];
}

static void fill_tables(struct phema_wide *wide)
{
    const struct phema_profile_set *set = wide->set;
    for (size_t t = 0; t < set->n_times; t++)
        set_quad(wide->times[t], set->times[t]);
    for (size_t k = 0; k < set->n_families; k++) {
        set_quad(wide->powers[k], set->families[k].power);
        for (size_t t = 0; t < set->n_times; t++) {
            mpfr_div(wide->term, wide->times[t], wide->times[set->n_times - 1], MPFR_RNDN);
            mpfr_pow(wide->kept[k * set->n_times + t], wide->term, wide->powers[k], MPFR_RNDN);
        }
    }
}

/* decay A B / ((A+B-1) ta) */
static void white_product(struct phema_wide *wide, mpfr_t out, mpfr_t a, mpfr_t b, mpfr_t ta,
                          mpfr_t decay)
{
    mpfr_add(wide->other, a, b, MPFR_RNDN);
    mpfr_sub_ui(wide->other, wide->other, 1, MPFR_RNDN);
    mpfr_mul(wide->other, wide->other, ta, MPFR_RNDN);
    mpfr_mul(out, decay, a, MPFR_RNDN);
    mpfr_mul(out, out, b, MPFR_RNDN);
    mpfr_div(out, out, wide->other, MPFR_RNDN);
}

/* ta (A/(A+1) - decay A / ((B+1)(A+B+1))) */
static void walk_product(struct phema_wide *wide, mpfr_t out, mpfr_t a, mpfr_t b, mpfr_t ta,
                         mpfr_t decay)
{
    mpfr_add(wide->other, a, b, MPFR_RNDN);
    mpfr_add_ui(wide->other, wide->other, 1, MPFR_RNDN);
    mpfr_mul(out, decay, a, MPFR_RNDN);
    mpfr_div(out, out, wide->other, MPFR_RNDN);
    mpfr_add_ui(wide->other, b, 1, MPFR_RNDN);
    mpfr_div(out, out, wide->other, MPFR_RNDN);
    mpfr_add_ui(wide->other, a, 1, MPFR_RNDN);
    mpfr_div(wide->other, a, wide->other, MPFR_RNDN);
    mpfr_sub(out, wide->other, out, MPFR_RNDN);
    mpfr_mul(out, out, ta, MPFR_RNDN);
}

static void multiply(struct phema_wide *wide, mpfr_t out, bool is_walk, size_t i, size_t j)
{
    const struct phema_profile_set *set = wide->set;
    const struct phema_member *a = &set->members[i];
    const struct phema_member *b = &set->members[j];
    if (a->time > b->time) {
        const struct phema_member *later = a;
        a = b;
        b = later;
    }
    mpfr_t *kept = wide->kept + b->kind * set->n_times;
    mpfr_div(wide->term, kept[a->time], kept[b->time], MPFR_RNDN);
    if (is_walk)
        walk_product(wide, out, wide->powers[a->kind], wide->powers[b->kind], wide->times[a->time],
                     wide->term);
    else
        white_product(wide, out, wide->powers[a->kind], wide->powers[b->kind], wide->times[a->time],
                      wide->term);
}

/* row i column j -= sum of (i, k) (j, k) for k < j */
static void subtract_dot(struct phema_wide *wide, const struct triangle *triangle, size_t i,
                         size_t j)
{
    mpfr_t *out = entry(triangle, i, j);
    for (size_t k = 0; k < j; k++) {
        mpfr_mul(wide->term, *entry(triangle, i, k), *entry(triangle, j, k), MPFR_RNDN);
        mpfr_sub(*out, *out, wide->term, MPFR_RNDN);
    }
}

/* false when a pivot fails */
static bool factorise(struct phema_wide *wide, const struct triangle *triangle)
{
    for (size_t i = 0; i < wide->set->n; i++) {
        for (size_t j = 0; j <= i; j++) {
            mpfr_t *out = entry(triangle, i, j);
            multiply(wide, *out, triangle->is_walk, triangle->order[i], triangle->order[j]);
            subtract_dot(wide, triangle, i, j);
            if (j < i)
                mpfr_div(*out, *out, *entry(triangle, j, j), MPFR_RNDN);
        }
        mpfr_t *pivot = entry(triangle, i, i);
        if (mpfr_sgn(*pivot) <= 0)
            return false;
        mpfr_sqrt(*pivot, *pivot, MPFR_RNDN);
    }
    return true;
}

static bool make_triangle(struct triangle *triangle, size_t n, const size_t *order, bool is_walk)
{
    *triangle = (struct triangle){.order = order, .is_walk = is_walk};
    triangle->entries = make_numbers(n * (n + 1) / 2);
    return triangle->entries != NULL;
}

static enum phema_status fail_memory(size_t n, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "no memory to solve for %zu snapshots", n);
}

enum phema_status phema_wide_open(struct phema_wide **out, const struct phema_profile_set *set,
                                  bool is_walk, struct phema_error *err)
{
    struct phema_wide *wide = phema_memory_has_room(MPFR_BYTES) ? calloc(1, sizeof(*wide)) : NULL;
    if (!wide)
        return fail_memory(set->n, err);
    wide->set = set;
    wide->is_walk = is_walk;
    mpfr_inits2(BITS, wide->term, wide->other, (mpfr_ptr)NULL);
    wide->kept = make_numbers(set->n_families * set->n_times);
    wide->powers = make_numbers(set->n_families);
    wide->times = make_numbers(set->n_times);
    wide->order = calloc(set->n, sizeof(*wide->order));
    bool has_factor = make_triangle(&wide->factor, set->n, wide->order, is_walk);
    wide->side = make_numbers(set->n);

    enum phema_status status = PHEMA_OK;
    if (!wide->kept || !wide->powers || !wide->times || !wide->order || !has_factor ||
        !wide->side || !phema_memory_has_room(MPFR_BYTES)) {
        status = fail_memory(set->n, err);
    } else {
        for (size_t i = 0; i < set->n; i++)
            wide->order[i] = i;
        fill_tables(wide);
        status = factorise(wide, &wide->factor) ? PHEMA_OK : PHEMA_NO;
    }
    if (status)
        phema_wide_close(wide);
    else
        *out = wide;
    return status;
}

void phema_wide_close(struct phema_wide *wide)
{
    if (!wide)
        return;
    free(wide->kept);
    free(wide->powers);
    free(wide->times);
    free(wide->factor.entries);
    free(wide->order);
    free(wide->side);
    mpfr_clears(wide->term, wide->other, (mpfr_ptr)NULL);
    mpfr_free_cache();
    free(wide);
}

static void solve(struct phema_wide *wide, phema_quad *x)
{
    size_t n = wide->set->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            mpfr_mul(wide->term, *entry(&wide->factor, i, j), wide->side[j], MPFR_RNDN);
            mpfr_sub(wide->side[i], wide->side[i], wide->term, MPFR_RNDN);
        }
        mpfr_div(wide->side[i], wide->side[i], *entry(&wide->factor, i, i), MPFR_RNDN);
    }
    for (size_t i = n; i-- > 0;) {
        mpfr_div(wide->side[i], wide->side[i], *entry(&wide->factor, i, i), MPFR_RNDN);
        for (size_t j = 0; j < i; j++) {
            mpfr_mul(wide->term, *entry(&wide->factor, i, j), wide->side[i], MPFR_RNDN);
            mpfr_sub(wide->side[j], wide->side[j], wide->term, MPFR_RNDN);
        }
        x[i] = get_quad(wide->side[i], wide->other);
    }
}

void phema_wide_solve_target(struct phema_wide *wide, phema_quad *x, size_t target)
{
    for (size_t i = 0; i < wide->set->n; i++)
        multiply(wide, wide->side[i], wide->is_walk, wide->set->n + target, i);
    solve(wide, x);
}

void phema_wide_solve_ones(struct phema_wide *wide, phema_quad *x)
{
    for (size_t i = 0; i < wide->set->n; i++)
        mpfr_set_ui(wide->side[i], 1, MPFR_RNDN);
    solve(wide, x);
}

struct sized { /* for sorting */
    size_t index;
    phema_quad size;
};

static int compare_sizes(const void *a, const void *b)
{
    const struct sized *x = a;
    const struct sized *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool order_by_size(size_t *order, const phema_quad *x, size_t n)
{
    struct sized *sized = calloc(n + 1, sizeof(*sized));
    if (!sized)
        return false;
    for (size_t i = 0; i < n; i++)
        sized[i] = (struct sized){i, phema_quad_abs(x[i])};
    qsort(sized, n, sizeof(*sized), compare_sizes);
    for (size_t i = 0; i < n; i++)
        order[i] = sized[i].index;
    free(sized);
    return true;
}

/* Babai's nearest plane, in the white metric. With e = x - weights, row i of L^T e is what e moves
 * the profile by once the rows below are settled: weight i is the double that brings it nearest to
 * 0. */
static void round_to_planes(struct phema_wide *wide, const struct triangle *triangle,
                            double *weights, const phema_quad *x)
{
    for (size_t i = wide->set->n; i-- > 0;) {
        phema_quad wanted = x[triangle->order[i]];
        mpfr_set_zero(wide->other, 1);
        for (size_t j = i + 1; j < wide->set->n; j++) {
            mpfr_mul(wide->term, *entry(triangle, j, i), wide->side[j], MPFR_RNDN);
            mpfr_add(wide->other, wide->other, wide->term, MPFR_RNDN);
        }
        mpfr_div(wide->other, wide->other, *entry(triangle, i, i), MPFR_RNDN);
        set_quad(wide->side[i], wanted);
        mpfr_add(wide->other, wide->other, wide->side[i], MPFR_RNDN);
        weights[triangle->order[i]] = mpfr_get_d(wide->other, MPFR_RNDN);
        mpfr_sub_d(wide->side[i], wide->side[i], weights[triangle->order[i]], MPFR_RNDN);
    }
}

enum phema_status phema_wide_round(struct phema_wide *wide, double *weights, const phema_quad *x,
                                   struct phema_error *err)
{
    size_t n = wide->set->n;
    phema_quad sum = 0;
    for (size_t i = 0; i < n; i++) {
        weights[i] = (double)x[i];
        sum += phema_quad_abs(x[i]);
    }
    if (sum < HARMLESS_SUM)
        return PHEMA_OK;

    size_t *order = calloc(n + 1, sizeof(*order));
    struct triangle triangle;
    bool has_memory = make_triangle(&triangle, n, order, false);
    has_memory =
        has_memory && order && order_by_size(order, x, n) && phema_memory_has_room(MPFR_BYTES);
    if (has_memory && factorise(wide, &triangle))
        round_to_planes(wide, &triangle, weights, x);
    free(triangle.entries);
    free(order);
    return has_memory ? PHEMA_OK : fail_memory(n, err);
}
