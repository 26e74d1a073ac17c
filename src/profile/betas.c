// SPDX-License-Identifier: Apache-2.0
/* betas.c - averages that are kept by a table of betas: from files, or step by step as a rule
 * (ema_rule.c) or TRL makes them. */
#include "spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/mapped_file.h"
#include "phema/number.h"
#include "phema/quad.h"

/* A step of 16 digits, a beta of 25, and blanks; longer lines are refused. */
#define MAX_LINE ((size_t)256)

/* ---- TRL ---- */

double spec_bema_update(const struct phema_spec_term *term, double t)
{
    double after = spec_value(term, "after"), every = spec_value(term, "every");
    double n = floor((t - after) / every);
    return n >= 1 ? after + n * every : 0;
}

/* lag + multiplier t */
static double bema_age(const struct phema_spec_term *term, double step)
{
    return spec_value(term, "lag") + spec_value(term, "multiplier") * step;
}

double spec_bema_factor(const struct phema_spec_term *term, double update)
{
    return (double)phema_quad_pow((phema_quad)bema_age(term, update),
                                  -(phema_quad)spec_value(term, "bias-power"));
}

/* BEMACallback (trl/trainer/callbacks.py; arXiv:2508.00180): at step `after` the average begins as
 * a copy of the parameters, and `every` steps later it is updated with 1 - beta =
 * age^-ema-power. */
static bool bema_beta(double *beta, const struct phema_spec_term *term, uint64_t step)
{
    double since = (double)step - spec_value(term, "after");
    if (since < 0 || fmod(since, spec_value(term, "every")) != 0)
        return false;
    double value =
        spec_one_minus_power(bema_age(term, (double)step), spec_value(term, "ema-power"));
    *beta = since > 0 ? fmin(value, 1 - spec_value(term, "min-ema")) : 0;
    return true;
}

/* ---- Tables ---- */

static enum phema_status add_step(struct phema_spec_term *term, struct phema_arena *arena,
                                  uint64_t step, double beta, struct phema_error *err)
{
    bool has_scales = term->rule.is_scaled;
    if (term->known.n == SPEC_MAX_STEPS)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "has more than %zu steps", SPEC_MAX_STEPS);
    if (term->known.n == term->capacity) {
        size_t capacity = term->capacity ? 2 * term->capacity : 1024;
        if (arena->total_bytes > SPEC_MAX_BYTES)
            return phema_fail(err, PHEMA_ERR_RESOURCE,
                              "the steps of all profiles take more than 2 GiB");
        uint64_t *steps = phema_arena_array(arena, capacity, sizeof(*steps));
        double *betas = phema_arena_array(arena, capacity, sizeof(*betas));
        double *scales = phema_arena_array(arena, has_scales ? capacity : 1, sizeof(*scales));
        if (!steps || !betas || !scales)
            return phema_fail_memory(err);
        if (term->known.n) {
            memcpy(steps, term->steps, term->known.n * sizeof(*steps));
            memcpy(betas, term->betas, term->known.n * sizeof(*betas));
        }
        if (term->known.n && has_scales)
            memcpy(scales, term->scales, term->known.n * sizeof(*scales));
        term->known.steps = term->steps = steps;
        term->known.betas = term->betas = betas;
        term->scales = scales;
        term->known.scales = has_scales ? scales : NULL;
        term->capacity = capacity;
    }
    if (has_scales)
        term->scales[term->known.n] = term->sum;
    term->steps[term->known.n] = step;
    term->betas[term->known.n++] = beta;
    return PHEMA_OK;
}

/* ---- Files ---- */

static enum phema_status read_line(struct phema_spec_term *term, struct phema_arena *arena,
                                   char *line, struct phema_error *err)
{
    char *comment = strchr(line, '#'), *rest = NULL;
    if (comment)
        *comment = '\0';
    const char *first = strtok_r(line, " \t\r", &rest);
    if (!first)
        return PHEMA_OK;
    const char *second = strtok_r(NULL, " \t\r", &rest);
    if (!second || strtok_r(NULL, " \t\r", &rest))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a step and its beta");
    uint64_t step = 0;
    double beta = 0;
    enum phema_status status = phema_count_parse(&step, first, err);
    if (!status)
        status = phema_number_parse(&beta, second, err);
    if (status)
        return PHEMA_ERR_FILE;
    if (!(beta >= 0 && beta <= 1))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a beta from 0 to 1, found %g", beta);
    uint64_t last = term->known.n ? term->steps[term->known.n - 1] : 0;
    if (step <= last)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a step after %llu, found %llu",
                          (unsigned long long)last, (unsigned long long)step);
    return add_step(term, arena, step, beta, err);
}

static enum phema_status read_lines(struct phema_spec_term *term, struct phema_arena *arena,
                                    struct phema_span text, struct phema_error *err)
{
    for (size_t number = 1; text.size; number++) {
        const struct phema_span next = phema_span_split(&text, '\n');
        char line[MAX_LINE + 1];
        enum phema_status status = PHEMA_OK;
        if (next.size > MAX_LINE || memchr(next.data, '\0', next.size)) {
            status = phema_fail(err, PHEMA_ERR_FILE,
                                "is no line of text of at most %zu bytes; expected a step and its "
                                "beta",
                                MAX_LINE);
        } else {
            memcpy(line, next.data, next.size);
            line[next.size] = '\0';
            status = read_line(term, arena, line, err);
        }
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return term->known.n ? PHEMA_OK : phema_fail(err, PHEMA_ERR_FILE, "has no steps");
}

PHEMA_FALLIBLE spec_read_table(struct phema_spec_term *term, struct phema_arena *arena,
                               struct phema_error *err)
{
    struct phema_file *file = NULL;
    enum phema_status status = phema_file_open(&file, term->path, err);
    if (!status)
        status = read_lines(term, arena, phema_file_span(file), err);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", term->path) : PHEMA_OK;
}

/* ---- Rules ---- */

static enum phema_status follow_rule(struct phema_spec_term *term, double t,
                                     struct phema_arena *arena, struct phema_error *err)
{
    if (t >= (double)SPEC_MAX_STEPS)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "would have more than %zu steps until %.0f; %s counts steps, not "
                          "images or tokens",
                          SPEC_MAX_STEPS, t, term->kind->name);
    enum phema_status status = PHEMA_OK;
    while (!status && (double)(term->n_followed + 1) <= t) {
        double beta = 0;
        uint64_t step = ++term->n_followed;
        bool is_update = term->kind->build == BUILD_BEMA ? bema_beta(&beta, term, step)
                                                         : spec_rule_beta(&beta, term, step);
        if (is_update)
            status = add_step(term, arena, term->n_followed, beta, err);
    }
    return status;
}

/* ---- Together ---- */

PHEMA_FALLIBLE spec_betas(const struct phema_betas **out, struct phema_spec_term *term, double t,
                          struct phema_arena *arena, struct phema_error *err)
{
    if (term->is_stepped || term->kind->build == BUILD_BEMA) {
        enum phema_status status = follow_rule(term, t, arena, err);
        if (status)
            return status;
    }
    if (term->known.n == 0 || (double)term->steps[0] > t)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has no step until time %g", t);
    *out = &term->known;
    return PHEMA_OK;
}
