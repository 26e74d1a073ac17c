// SPDX-License-Identifier: Apache-2.0
/* mpfr_system.c - 256-bit solve for nearly equal snapshots. The only file that uses MPFR, which
 * ends the program when it gets no memory. So the numbers are allocated here, and enough free
 * memory for the allocations of MPFR itself is a condition. */
#include "linear_system.h"

#include <mpfr.h>
#include <stdlib.h>

#include "phema/memory.h"
#include "phema/sort.h"

#define BITS 256

/* More than MPFR allocates by itself, for a logarithm and an exponential at a time. */
#define MPFR_BYTES ((uint64_t)1 << 20)

/* Of |weights|: rounding them moves the profile by 1e-13. */
#define HARMLESS_SUM ((phema_quad)1e3)

struct triangle {        /* the Cholesky factor of the Gram matrix in some order of the snapshots */
    mpfr_t *entries;     /* lower triangle, packed by rows */
    const size_t *order; /* [n]; NULL: as they come */
    bool is_walk;        /* the metric */
};

struct phema_mpfr_system {
    const struct phema_profile_set *set; /* borrowed */
    mpfr_t *kept;   /* [n_families x n_times] (t / last time)^power; the other arrays lie behind */
    mpfr_t *powers; /* [n_families] */
    mpfr_t *times;  /* [n_times] */
    mpfr_t *side;   /* [n] */
    struct triangle factor;
    mpfr_t term, other;
};

/* All in one block, not allocated by MPFR, of value 0; or NULL. */
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
        double digits = mpfr_get_d(scratch, MPFR_RNDN);
        sum += (phema_quad)digits;
        mpfr_sub_d(scratch, scratch, digits, MPFR_RNDN);
    }
    return sum;
}

static mpfr_t *entry(const struct triangle *triangle, size_t i, size_t j)
{
    return &triangle->entries[i * (i + 1) / 2 + j];
}

static void fill_tables(struct phema_mpfr_system *system)
{
    const struct phema_profile_set *set = system->set;
    for (size_t t = 0; t < set->n_times; t++)
        set_quad(system->times[t], set->times[t]);
    for (size_t k = 0; k < set->n_families; k++) {
        set_quad(system->powers[k], set->families[k].power);
        for (size_t t = 0; t < set->n_times; t++) {
            mpfr_div(system->term, system->times[t], system->times[set->n_times - 1], MPFR_RNDN);
            mpfr_pow(system->kept[k * set->n_times + t], system->term, system->powers[k],
                     MPFR_RNDN);
        }
    }
}

/* decay A B / ((A+B-1) ta) */
static void white_product(struct phema_mpfr_system *system, mpfr_t out, mpfr_t a, mpfr_t b,
                          mpfr_t ta, mpfr_t decay)
{
    mpfr_add(system->other, a, b, MPFR_RNDN);
    mpfr_sub_ui(system->other, system->other, 1, MPFR_RNDN);
    mpfr_mul(system->other, system->other, ta, MPFR_RNDN);
    mpfr_mul(out, decay, a, MPFR_RNDN);
    mpfr_mul(out, out, b, MPFR_RNDN);
    mpfr_div(out, out, system->other, MPFR_RNDN);
}

/* ta (A/(A+1) - decay A / ((B+1)(A+B+1))) */
static void walk_product(struct phema_mpfr_system *system, mpfr_t out, mpfr_t a, mpfr_t b,
                         mpfr_t ta, mpfr_t decay)
{
    mpfr_add(system->other, a, b, MPFR_RNDN);
    mpfr_add_ui(system->other, system->other, 1, MPFR_RNDN);
    mpfr_mul(out, decay, a, MPFR_RNDN);
    mpfr_div(out, out, system->other, MPFR_RNDN);
    mpfr_add_ui(system->other, b, 1, MPFR_RNDN);
    mpfr_div(out, out, system->other, MPFR_RNDN);
    mpfr_add_ui(system->other, a, 1, MPFR_RNDN);
    mpfr_div(system->other, a, system->other, MPFR_RNDN);
    mpfr_sub(out, system->other, out, MPFR_RNDN);
    mpfr_mul(out, out, ta, MPFR_RNDN);
}

static void multiply(struct phema_mpfr_system *system, mpfr_t out, bool is_walk, size_t i, size_t j)
{
    const struct phema_profile_set *set = system->set;
    const struct phema_member *a = &set->members[i];
    const struct phema_member *b = &set->members[j];
    if (a->time > b->time) {
        const struct phema_member *later = a;
        a = b;
        b = later;
    }
    mpfr_t *kept = system->kept + b->family * set->n_times;
    mpfr_div(system->term, kept[a->time], kept[b->time], MPFR_RNDN);
    if (is_walk)
        walk_product(system, out, system->powers[a->family], system->powers[b->family],
                     system->times[a->time], system->term);
    else
        white_product(system, out, system->powers[a->family], system->powers[b->family],
                      system->times[a->time], system->term);
}

/* row i column j -= sum of (i, k) (j, k) for k < j */
static void subtract_dot(struct phema_mpfr_system *system, const struct triangle *triangle,
                         size_t i, size_t j)
{
    mpfr_t *out = entry(triangle, i, j);
    for (size_t k = 0; k < j; k++) {
        mpfr_mul(system->term, *entry(triangle, i, k), *entry(triangle, j, k), MPFR_RNDN);
        mpfr_sub(*out, *out, system->term, MPFR_RNDN);
    }
}

/* false when a pivot fails */
static bool factorise(struct phema_mpfr_system *system, const struct triangle *triangle)
{
    for (size_t i = 0; i < system->set->n; i++) {
        for (size_t j = 0; j <= i; j++) {
            mpfr_t *out = entry(triangle, i, j);
            multiply(system, *out, triangle->is_walk, triangle->order ? triangle->order[i] : i,
                     triangle->order ? triangle->order[j] : j);
            subtract_dot(system, triangle, i, j);
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

enum phema_status phema_mpfr_open(struct phema_mpfr_system **out,
                                  const struct phema_profile_set *set, bool is_walk,
                                  struct phema_error *err)
{
    struct phema_mpfr_system *system =
        phema_memory_has_room(MPFR_BYTES) ? calloc(1, sizeof(*system)) : NULL;
    if (!system)
        return phema_fail_solve(set->n, err);
    system->set = set;
    mpfr_inits2(BITS, system->term, system->other, (mpfr_ptr)NULL);
    size_t n_kept = set->n_families * set->n_times, n_entries = set->n * (set->n + 1) / 2;
    system->kept = make_numbers(n_kept + set->n_families + set->n_times + set->n + n_entries);
    enum phema_status status = PHEMA_OK;
    if (!system->kept || !phema_memory_has_room(MPFR_BYTES)) {
        status = phema_fail_solve(set->n, err);
        goto fail;
    }
    system->powers = system->kept + n_kept;
    system->times = system->powers + set->n_families;
    system->side = system->times + set->n_times;
    system->factor = (struct triangle){.entries = system->side + set->n, .is_walk = is_walk};
    fill_tables(system);
    if (!factorise(system, &system->factor)) {
        status = PHEMA_NO;
        goto fail;
    }
    *out = system;
    return PHEMA_OK;

fail:
    phema_mpfr_close(system);
    return status;
}

void phema_mpfr_close(struct phema_mpfr_system *system)
{
    if (!system)
        return;
    free(system->kept);
    mpfr_clears(system->term, system->other, (mpfr_ptr)NULL);
    mpfr_free_cache();
    free(system);
}

static void solve(struct phema_mpfr_system *system, phema_quad *x)
{
    size_t n = system->set->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            mpfr_mul(system->term, *entry(&system->factor, i, j), system->side[j], MPFR_RNDN);
            mpfr_sub(system->side[i], system->side[i], system->term, MPFR_RNDN);
        }
        mpfr_div(system->side[i], system->side[i], *entry(&system->factor, i, i), MPFR_RNDN);
    }
    for (size_t i = n; i-- > 0;) {
        mpfr_div(system->side[i], system->side[i], *entry(&system->factor, i, i), MPFR_RNDN);
        for (size_t j = 0; j < i; j++) {
            mpfr_mul(system->term, *entry(&system->factor, i, j), system->side[i], MPFR_RNDN);
            mpfr_sub(system->side[j], system->side[j], system->term, MPFR_RNDN);
        }
        x[i] = get_quad(system->side[i], system->other);
    }
}

void phema_mpfr_solve_target(struct phema_mpfr_system *system, phema_quad *x, size_t target)
{
    for (size_t i = 0; i < system->set->n; i++)
        multiply(system, system->side[i], system->factor.is_walk, system->set->n + target, i);
    solve(system, x);
}

void phema_mpfr_solve_ones(struct phema_mpfr_system *system, phema_quad *x)
{
    for (size_t i = 0; i < system->set->n; i++)
        mpfr_set_ui(system->side[i], 1, MPFR_RNDN);
    solve(system, x);
}

static int compare_sizes(const void *a, const void *b, void *context)
{
    const phema_quad *x = *(const phema_quad *const *)context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    phema_quad size = phema_quad_abs(x[i]), other = phema_quad_abs(x[j]);
    if (size != other)
        return size < other ? -1 : 1;
    return (i > j) - (i < j);
}

/* Babai's nearest plane, in the white metric. With e = x - weights, e moves the profile by row i of
 * L^T e once the rows below are settled. Weight i is the double that brings that row nearest to
 * 0. */
static void round_to_planes(struct phema_mpfr_system *system, const struct triangle *triangle,
                            double *weights, const phema_quad *x)
{
    for (size_t i = system->set->n; i-- > 0;) {
        phema_quad wanted = x[triangle->order[i]];
        mpfr_set_zero(system->other, 1);
        for (size_t j = i + 1; j < system->set->n; j++) {
            mpfr_mul(system->term, *entry(triangle, j, i), system->side[j], MPFR_RNDN);
            mpfr_add(system->other, system->other, system->term, MPFR_RNDN);
        }
        mpfr_div(system->other, system->other, *entry(triangle, i, i), MPFR_RNDN);
        set_quad(system->side[i], wanted);
        mpfr_add(system->other, system->other, system->side[i], MPFR_RNDN);
        weights[triangle->order[i]] = mpfr_get_d(system->other, MPFR_RNDN);
        mpfr_sub_d(system->side[i], system->side[i], weights[triangle->order[i]], MPFR_RNDN);
    }
}

enum phema_status phema_mpfr_round(struct phema_mpfr_system *system, double *weights,
                                   const phema_quad *x, struct phema_error *err)
{
    size_t n = system->set->n;
    phema_quad sum = 0;
    for (size_t i = 0; i < n; i++) {
        weights[i] = (double)x[i];
        sum += phema_quad_abs(x[i]);
    }
    if (sum < HARMLESS_SUM)
        return PHEMA_OK;

    size_t *order = calloc(n + 1, sizeof(*order));
    struct triangle triangle = {.entries = make_numbers(n * (n + 1) / 2), .order = order};
    bool has_memory = triangle.entries && order && phema_memory_has_room(MPFR_BYTES);
    for (size_t i = 0; has_memory && i < n; i++)
        order[i] = i;
    if (has_memory)
        phema_sort(order, n, sizeof(*order), compare_sizes, &x);
    if (has_memory && factorise(system, &triangle))
        round_to_planes(system, &triangle, weights, x);
    free(triangle.entries);
    free(order);
    return has_memory ? PHEMA_OK : phema_fail_solve(n, err);
}
