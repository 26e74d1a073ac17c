// SPDX-License-Identifier: Apache-2.0
/* beta_table.c - tables of betas: from files, and step by step as a trainer makes them. */
#include <stdlib.h>
#include <string.h>

#include "phema/mapped_file.h"
#include "phema/number.h"
#include "spec.h"

/* A step of 16 digits, a beta of 25, and blanks; longer lines are refused. */
#define MAX_LINE ((size_t)256)

static enum phema_status add_step(struct phema_spec_term *term, struct phema_arena *arena,
                                  uint64_t step, double beta, struct phema_error *err)
{
    if (term->known.n == SPEC_MAX_STEPS)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "has more than %zu steps", SPEC_MAX_STEPS);
    if (term->known.n == term->capacity) {
        size_t capacity = term->capacity ? 2 * term->capacity : 1024;
        if (arena->total_bytes > SPEC_MAX_BYTES)
            return phema_fail(err, PHEMA_ERR_RESOURCE,
                              "the steps of all profiles take more than 2 GiB");
        uint64_t *steps = phema_arena_array(arena, capacity, sizeof(*steps));
        double *betas = phema_arena_array(arena, capacity, sizeof(*betas));
        if (!steps || !betas)
            return phema_fail_memory(err);
        if (term->known.n) {
            memcpy(steps, term->steps, term->known.n * sizeof(*steps));
            memcpy(betas, term->betas, term->known.n * sizeof(*betas));
        }
        term->known.steps = term->steps = steps;
        term->known.betas = term->betas = betas;
        term->capacity = capacity;
    }
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
    size_t number = 1;
    for (size_t at = 0; at < text.size; number++) {
        const uint8_t *begin = text.data + at;
        const uint8_t *end = memchr(begin, '\n', text.size - at);
        size_t size = end ? (size_t)(end - begin) : text.size - at;
        char line[MAX_LINE + 1];
        enum phema_status status = PHEMA_OK;
        if (size > MAX_LINE || memchr(begin, '\0', size)) {
            status = phema_fail(err, PHEMA_ERR_FILE,
                                "is no line of text of at most %zu bytes; expected a step and its "
                                "beta",
                                MAX_LINE);
        } else {
            memcpy(line, begin, size);
            line[size] = '\0';
            status = read_line(term, arena, line, err);
        }
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
        at += size + 1;
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

/* ---- Trainers ---- */

static enum phema_status follow_trainer(struct phema_spec_term *term, double t,
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
        if (spec_trainer_beta(&beta, term, ++term->n_followed))
            status = add_step(term, arena, term->n_followed, beta, err);
    }
    return status;
}

/* ---- Together ---- */

PHEMA_FALLIBLE spec_betas(const struct phema_betas **out, struct phema_spec_term *term, double t,
                          struct phema_arena *arena, struct phema_error *err)
{
    if (spec_is_trainer(term->kind)) {
        enum phema_status status = follow_trainer(term, t, arena, err);
        if (status)
            return status;
    }
    if (term->known.n == 0 || (double)term->steps[0] > t)
        return phema_fail(err, PHEMA_ERR_INPUTS, "has no step until time %g", t);
    *out = &term->known;
    return PHEMA_OK;
}
