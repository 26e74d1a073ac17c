// SPDX-License-Identifier: Apache-2.0
/* design.c - public API: rates designs, finds the best one, and those of smaller disks. */
#include "phema/design.h"
#include "phema/setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

#define MOST_STARTS 6

/* Disks of the choices, as shares of the whole; the last ones are the best. */
#define N_DISKS 5
static const double disk_shares[N_DISKS] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 1};

#define MOST_DISKS 40 /* 2^22 times the first one */

/* A choice that costs more must be better by this much. */
#define WORTH_IT 0.95

void phema_design_clear(struct phema_design *design)
{
    free(design->times);
    *design = (struct phema_design){0};
}

void phema_design_choices_clear(struct phema_design_choices *choices)
{
    for (size_t i = 0; i < choices->n; i++)
        phema_design_clear(&choices->items[i]);
    choices->n = 0;
}

void phema_design_spread(double *sigma_rels, size_t n, double first, double last)
{
    for (size_t i = 0; i < n; i++)
        sigma_rels[i] = first * pow(last / first, (double)i / (double)(n - 1));
    sigma_rels[n - 1] = last;
}

/* ---- One design ---- */

PHEMA_FALLIBLE phema_design_rate(struct phema_design *design, double *errors,
                                 const struct phema_design_question *question,
                                 struct phema_error *err)
{
    struct filter filter;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < design->n_widths; k++) {
        struct kernel kernel;
        status = kernel_make(&kernel, &design->widths[k].profile, 0, err);
    }
    if (!status)
        status = filter_open(&filter, question, err);
    if (status)
        return status;
    filter_rate(design, errors, &filter);
    filter_close(&filter);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_design_width_make(struct phema_design_width *out, double sigma_rel,
                                       enum phema_dtype dtype,
                                       const struct phema_design_question *question,
                                       struct phema_error *err)
{
    struct phema_design_width width = {.sigma_rel = sigma_rel, .dtype = dtype};
    enum phema_status status = phema_gamma_from_sigma_rel(&width.profile.gamma, sigma_rel, err);
    if (status)
        return status;
    if (question->shape == PHEMA_SHAPE_EMA)
        width.profile = (struct phema_profile){.shape = PHEMA_SHAPE_EMA,
                                               .half_life = M_LN2 * sigma_rel * question->until};
    *out = width;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_design_make_even(struct phema_design *out,
                                      const struct phema_design_width *widths, size_t n_widths,
                                      const struct phema_design_question *question,
                                      struct phema_error *err)
{
    struct phema_design design = {.n_widths = n_widths};
    uint64_t bytes = phema_design_bytes(widths, n_widths, question);
    if (n_widths == 0 || n_widths > ARRAY_LEN(design.widths) || bytes == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected some widths of a model, found %zu",
                          n_widths);
    for (size_t k = 0; k < n_widths; k++)
        design.widths[k] = widths[k];
    uint64_t most = PHEMA_DESIGN_MAX_SNAPSHOTS / n_widths, n = times_within(question, bytes);
    design.times = calloc(PHEMA_DESIGN_MAX_SNAPSHOTS, sizeof(*design.times));
    if (!design.times)
        return phema_fail_memory(err);
    design.n_times = times_even(design.times, (size_t)(n < most ? n : most), question);
    design.disk_bytes = bytes * (design.n_times + question->n_useless);
    enum phema_status status =
        design.n_times ? phema_design_rate(&design, NULL, question, err)
                       : phema_fail(err, PHEMA_ERR_TARGET, "no interval divides all ends");
    if (status)
        phema_design_clear(&design);
    else
        *out = design;
    return status;
}

/* ---- The search ---- */

static uint64_t least_bytes(const struct phema_design_question *question)
{
    unsigned bits = 64;
    for (size_t d = 0; d < question->n_dtypes; d++)
        bits = phema_dtype_bits(question->dtypes[d]) < bits ? phema_dtype_bits(question->dtypes[d])
                                                            : bits;
    size_t n_widths = question->n_fixed ? question->n_fixed : question->least_widths;
    return ((n_widths + question->has_raw) * question->model_elems * (bits / 8) +
            question->other_bytes) *
           (times_count_needed(question) + question->n_useless);
}

static enum phema_status fail_intervals(const struct phema_design_question *question,
                                        struct phema_error *err)
{
    struct phema_name_buffer multiple, until;
    if (question->after > 0) {
        bool is_even = question->spacing == PHEMA_SPACING_EVEN;
        return phema_fail_setting(err, PHEMA_ERR_TARGET, PHEMA_SET_AFTER,
                                  "averages at any time from %s on need a snapshot by then%s",
                                  phema_number_format(&multiple, question->after),
                                  is_even ? "; no interval so short divides all wanted times and "
                                            "fits the disk"
                                          : ", which the disk does not hold");
    }
    if (!(question->grain > 0))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "no interval between snapshots divides all wanted times and fits the "
                          "disk; round %s and %s, such as to multiples of 1000",
                          phema_setting_name(PHEMA_SET_UNTIL), phema_setting_name(PHEMA_SET_AT));
    double rounded = fmax(1, floor(question->until / question->grain)) * question->grain;
    return phema_suggest(err,
                         phema_fail_setting(err, PHEMA_ERR_TARGET, PHEMA_SET_UNTIL,
                                            "this trainer saves at multiples of %s, and no such "
                                            "interval divides all wanted times and fits the disk",
                                            phema_number_format(&multiple, question->grain)),
                         PHEMA_SET_UNTIL, phema_number_format(&until, rounded));
}

static enum phema_status fail_disk(const struct phema_design_question *question,
                                   struct phema_error *err)
{
    struct phema_name_buffer given, needed;
    size_t n_ends = times_count_needed(question) + question->n_useless;
    uint64_t bytes = least_bytes(question);
    if (question->disk_bytes >= bytes)
        return fail_intervals(question, err);
    enum phema_status status =
        n_ends == 1
            ? phema_fail_setting(err, PHEMA_ERR_TARGET, PHEMA_SET_DISK,
                                 "%s does not hold one snapshot of %s",
                                 phema_size_format(&given, question->disk_bytes),
                                 phema_size_enough(&needed, bytes))
            : phema_fail_setting(err, PHEMA_ERR_TARGET, PHEMA_SET_DISK,
                                 "%s does not hold a snapshot at each of %zu times, which take %s",
                                 phema_size_format(&given, question->disk_bytes), n_ends,
                                 phema_size_enough(&needed, bytes));
    char size[32]; /* without a blank, as an option takes it */
    const char *text = phema_size_enough(&needed, bytes), *blank = strchr(text, ' ');
    (void)snprintf(size, sizeof(size), "%.*s%s", (int)(blank ? blank - text : 31), text,
                   blank ? blank + 1 : "");
    return phema_suggest(err, status, PHEMA_SET_DISK, size);
}

static enum phema_status search(struct candidate *best, const struct filter *filter, double work,
                                struct phema_error *err)
{
    size_t most = grid_most(filter->question);
    struct candidate *items = calloc(most, sizeof(*items));
    if (!items)
        return phema_fail_memory(err);
    size_t n_first = grid_list(items, filter, work);
    grid_rate(items, n_first, filter);
    size_t n = grid_spread(items, n_first, filter->question);
    grid_rate(items + n_first, n - n_first, filter);
    n = grid_choose(items, n, MOST_STARTS);
    grid_refine(items, n, filter, work);
    *best = (struct candidate){.smooth = HUGE_VAL};
    for (size_t i = 0; i < n; i++)
        if (items[i].smooth < best->smooth)
            *best = items[i];
    free(items);
    if (!isfinite(best->smooth))
        return fail_disk(filter->question, err);
    return PHEMA_OK;
}

/* ---- Usual choices ---- */

const struct phema_design_usual phema_design_usuals[PHEMA_DESIGN_N_USUAL] = {
    {"EDM2", {0.05, 0.10}, 2, false, PHEMA_F16},
    {"ema-pytorch", {0.05, 0.28}, 2, false, PHEMA_F16},
    {"torchtitan", {0.063}, 1, true, PHEMA_F32},
    {"raw alone", {0}, 0, true, PHEMA_F32},
};

static bool allows(const struct phema_design_question *question,
                   const struct phema_design_usual *usual)
{
    return question->n_fixed == 0 && question->begun == 0 && question->shape == PHEMA_SHAPE_POWER &&
           usual->has_raw == question->has_raw && usual->n_widths >= question->least_widths &&
           usual->n_widths <= question->most_widths;
}

/* A usual choice in place of the design, if it is better. */
static void try_usual(struct phema_design *best, const struct phema_design_usual *usual,
                      enum phema_dtype dtype, const struct phema_design_question *question)
{
    struct phema_error ignored = {0};
    struct phema_design_width widths[3];
    struct phema_design design;
    size_t n = 0;
    for (; n < usual->n_widths; n++)
        if (phema_design_width_make(&widths[n], usual->sigma_rels[n], dtype, question, &ignored))
            return;
    if (usual->has_raw)
        widths[n++] = (struct phema_design_width){
            .profile.shape = PHEMA_SHAPE_RAW, .sigma_rel = PHEMA_UNKNOWN, .dtype = dtype};
    if (phema_design_make_even(&design, widths, n, question, &ignored))
        return;
    if (design.worst_error < best->worst_error) {
        phema_design_clear(best);
        *best = design;
    } else {
        phema_design_clear(&design);
    }
}

/* work: the share of the usual work that the search may take */
static enum phema_status find(struct phema_design *out,
                              const struct phema_design_question *question, double work,
                              struct phema_error *err)
{
    struct filter filter;
    struct candidate best;
    enum phema_status status = filter_open(&filter, question, err);
    if (status)
        return status;
    status = search(&best, &filter, work, err);
    if (!status)
        status = candidate_finish(out, &best, &filter, work, err);
    for (size_t i = 0; !status && i < PHEMA_DESIGN_N_USUAL; i++)
        for (size_t d = 0; d < question->n_dtypes && allows(question, &phema_design_usuals[i]); d++)
            try_usual(out, &phema_design_usuals[i], question->dtypes[d], question);
    filter_close(&filter);
    return status;
}

PHEMA_FALLIBLE phema_design_find(struct phema_design *out,
                                 const struct phema_design_question *question,
                                 struct phema_error *err)
{
    return find(out, question, 1, err);
}

/* ---- Choices ---- */

/* Most bytes that are of use: beyond, snapshots are too many. */
static uint64_t most_bytes(const struct phema_design_question *question)
{
    unsigned bits = 0;
    for (size_t d = 0; d < question->n_dtypes; d++)
        bits = phema_dtype_bits(question->dtypes[d]) > bits ? phema_dtype_bits(question->dtypes[d])
                                                            : bits;
    double bytes = ((double)question->model_elems * bits / 8 + (double)question->other_bytes) *
                   fmin(PHEMA_DESIGN_MAX_SNAPSHOTS + (double)question->n_useless,
                        (question->until - question->begun) * PHEMA_DESIGN_MAX_WIDTHS);
    return (double)question->disk_bytes < bytes ? question->disk_bytes : (uint64_t)bytes;
}

/* Disks to try, ascending; returns their number. */
static size_t list_disks(uint64_t disks[MOST_DISKS], const struct phema_design_question *question)
{
    double whole = (double)most_bytes(question), least = (double)least_bytes(question);
    size_t n = 0;
    if (question->max_error > 0)
        while (n + 1 < MOST_DISKS && least * pow(1.5, (double)n) < whole) {
            disks[n] = (uint64_t)(least * pow(1.5, (double)n));
            n++;
        }
    else
        for (size_t d = 0; d + 1 < N_DISKS; d++)
            disks[n++] = (uint64_t)(whole * disk_shares[d]);
    disks[n++] = (uint64_t)whole;
    return n;
}

/* The last ones are kept where there are too many. */
static void add_choice(struct phema_design_choices *choices, const struct phema_design *design)
{
    if (choices->n == PHEMA_DESIGN_MAX_CHOICES) {
        phema_design_clear(&choices->items[0]);
        for (size_t i = 1; i < choices->n; i++)
            choices->items[i - 1] = choices->items[i];
        choices->n--;
    }
    choices->items[choices->n++] = *design;
}

PHEMA_FALLIBLE phema_design_choose(struct phema_design_choices *out,
                                   const struct phema_design_question *question,
                                   struct phema_error *err)
{
    struct phema_design_choices choices = {0};
    uint64_t disks[MOST_DISKS];
    size_t n = list_disks(disks, question);
    bool is_reached = false;
    for (size_t d = 0; d < n && !is_reached; d++) {
        struct phema_design design;
        struct phema_design_question smaller = *question;
        smaller.disk_bytes = disks[d];
        enum phema_status status =
            find(&design, &smaller, fmin(1, (double)N_DISKS / (double)n), err);
        if (question->report)
            question->report(question->context, (double)(d + 1) / (double)n);
        if (status == PHEMA_ERR_TARGET && d + 1 < n)
            continue;
        if (status) {
            phema_design_choices_clear(&choices);
            return status;
        }
        is_reached = question->max_error > 0 && design.worst_error <= question->max_error;
        const struct phema_design *before = choices.n ? &choices.items[choices.n - 1] : NULL;
        if (!before || design.worst_error < WORTH_IT * before->worst_error || is_reached)
            add_choice(&choices, &design);
        else
            phema_design_clear(&design);
    }
    choices.chosen = choices.n - 1;
    *out = choices;
    if (!(question->max_error > 0) || is_reached)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_NO, "the worst error expected is %.1e, above %g",
                      choices.items[choices.chosen].worst_error, question->max_error);
}
