// SPDX-License-Identifier: Apache-2.0
/* request.c - Options become kinds of files, the averages they need, and the list of files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "phema/setting.h"

#define MAX_FILES 1000000u
/* Each takes a row of GEN_RUN_ELEMS doubles in every thread, 64 KiB, and time at every step. */
#define MAX_AVERAGES 4096u

/* ---- One kind of files: its profile checked, its name ---- */

/* PHEMA_ERR_TARGET: no such width */
static enum phema_status init_power_kind(struct gen_kind *kind, double sigma_rel,
                                         uint64_t update_every, struct phema_error *err)
{
    *kind = (struct gen_kind){
        .profile = {.shape = PHEMA_SHAPE_POWER, .update_every = update_every},
        .sigma_rel = sigma_rel,
    };
    /* the shortest decimals that read back as the same number, at least 3: 0.050, 0.0125 */
    for (int digits = 3; digits <= 40; digits++) {
        (void)snprintf(kind->name, sizeof(kind->name), "%.*f", digits, sigma_rel);
        if (strtod(kind->name, NULL) == sigma_rel)
            break;
    }
    return phema_gamma_from_sigma_rel(&kind->profile.gamma, sigma_rel, err);
}

/* ---- Other shapes ---- */

static enum phema_status check_table(const struct phema_betas *betas, struct phema_error *err)
{
    if (!betas || !betas->n)
        return phema_fail(err, PHEMA_ERR_USAGE, "a table without steps");
    for (size_t i = 0; i < betas->n; i++) {
        if (betas->steps[i] <= (i ? betas->steps[i - 1] : 0))
            return phema_fail(err, PHEMA_ERR_USAGE, "steps of a table: expected ascending from 1");
        if (!(betas->betas[i] >= 0 && betas->betas[i] <= 1))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "beta at step %llu: expected a number from 0 to 1, found %g",
                              (unsigned long long)betas->steps[i], betas->betas[i]);
    }
    return PHEMA_OK;
}

static enum phema_status check_profile(const struct phema_profile *profile, struct phema_error *err)
{
    const struct {
        enum phema_shape shape;
        const char *what;
        double value, least;
    } numbers[] = {
        {PHEMA_SHAPE_POWER, "gamma", profile->gamma, -0.5},
        {PHEMA_SHAPE_RAMPED, "ramp", profile->ramp, 0},
        {PHEMA_SHAPE_RAMPED, "half-life", profile->half_life, 0},
        {PHEMA_SHAPE_EMA, "half-life", profile->half_life, 0},
        {PHEMA_SHAPE_WINDOW, "length", profile->length, 0},
        {PHEMA_SHAPE_COSINE, "length", profile->length, 0},
        {PHEMA_SHAPE_MINUS_SQRT, "length", profile->length, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        double value = numbers[i].value, least = numbers[i].least;
        if (numbers[i].shape == profile->shape && !(value > least && value < 0x1p53))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: expected a number above %g and below 2^53, found %g",
                              numbers[i].what, least, value);
    }
    return profile->shape == PHEMA_SHAPE_TABLE ? check_table(profile->betas, err) : PHEMA_OK;
}

/* update_every: of a power function whose profile has 0.
 * PHEMA_ERR_USAGE: a number of the profile is out of range; names its text */
static enum phema_status init_kind(struct gen_kind *kind, const struct phema_gen_profile *from,
                                   uint64_t update_every, struct phema_error *err)
{
    /* not one with a clock of its own, which its text describes */
    bool is_power = from->profile.shape == PHEMA_SHAPE_POWER && from->profile.origin == 0;
    if (is_power && from->profile.update_every)
        update_every = from->profile.update_every;
    if (is_power && !isnan(from->sigma_rel))
        return init_power_kind(kind, from->sigma_rel, update_every, err);
    *kind = (struct gen_kind){.profile = from->profile, .text = is_power ? NULL : from->text};
    kind->is_by_gamma = is_power;
    kind->profile.t = 0;
    kind->profile.label = NULL;
    kind->profile.update_every = is_power ? update_every : 1;
    kind->sigma_rel = is_power ? phema_sigma_rel_from_gamma(from->profile.gamma) : (double)NAN;
    enum phema_status status = check_profile(&kind->profile, err);
    int size = snprintf(kind->name, sizeof(kind->name), "%s", from->name);
    if (!status && (size < 1 || (size_t)size >= sizeof(kind->name) || strchr(from->name, '/')))
        status = phema_fail(err, PHEMA_ERR_USAGE, "cannot be part of a file's name");
    return status ? phema_fail_in(err, status, "%s", from->text) : PHEMA_OK;
}

/* ---- All kinds, averages and files ---- */

/* Kind i of those asked for; after them come raw parameters. */
static enum phema_status resolve_kind(struct gen_kind *kind, const struct phema_gen_kinds *asked,
                                      size_t i, uint64_t update_every, struct phema_error *err)
{
    static const struct phema_gen_profile raw = {
        .profile = {.shape = PHEMA_SHAPE_RAW}, .text = "raw", .name = "raw"};
    if (i < asked->n_sigmas)
        return init_power_kind(kind, asked->sigmas[i], update_every, err);
    i -= asked->n_sigmas;
    const struct phema_gen_profile *profile = i < asked->n_profiles ? &asked->profiles[i] : &raw;
    enum phema_status status = init_kind(kind, profile, update_every, err);
    kind->hides_profile = profile == &raw;
    return status;
}

/* Two kinds of the same name would write the same file. */
static enum phema_status resolve_kinds(struct gen_kind *kinds, size_t n,
                                       const struct phema_gen_kinds *asked, uint64_t update_every,
                                       struct phema_error *err)
{
    for (size_t i = 0; i < n; i++) {
        enum phema_status status = resolve_kind(&kinds[i], asked, i, update_every, err);
        if (status)
            return status;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(kinds[i].name, kinds[j].name) != 0)
                continue;
            if (!kinds[i].text)
                return phema_fail(err, PHEMA_ERR_USAGE, "sigma_rel %g is given twice",
                                  kinds[i].sigma_rel);
            return phema_fail(err, PHEMA_ERR_USAGE, "profile %s is given twice", kinds[i].text);
        }
    }
    return PHEMA_OK;
}

static bool is_same_average(const struct phema_profile *a, const struct phema_profile *b)
{
    return a->shape == b->shape && a->t == b->t && a->gamma == b->gamma &&
           a->update_every == b->update_every && a->half_life == b->half_life &&
           a->ramp == b->ramp && a->length == b->length && a->betas == b->betas &&
           a->origin == b->origin;
}

/* Finds or adds an average; its index. */
static enum phema_status find_average(size_t *index, struct gen_request *request,
                                      const struct gen_average *wanted, struct phema_error *err)
{
    for (size_t i = 0; i < request->n_averages; i++) {
        const struct gen_average *average = &request->averages[i];
        if (is_same_average(&average->profile, &wanted->profile) &&
            average->is_reset == wanted->is_reset) {
            *index = i;
            return PHEMA_OK;
        }
    }
    if (request->n_averages == MAX_AVERAGES)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "more than %u averages to track at once; windows and the like are one "
                          "for each of their times",
                          MAX_AVERAGES);
    *index = request->n_averages++;
    request->averages[*index] = *wanted;
    return PHEMA_OK;
}

/* A shape with a beginning needs one average for each time. */
static enum phema_status find_average_at(size_t *index, struct gen_request *request,
                                         const struct gen_kind *kind, uint64_t time,
                                         struct phema_error *err)
{
    if (!phema_shape_has_begin(kind->profile.shape)) {
        *index = kind->average;
        return PHEMA_OK;
    }
    struct gen_average wanted = {.profile = kind->profile, .last = time};
    struct phema_profile *profile = &wanted.profile;
    profile->t = (double)time;
    if (!(profile->length <= profile->t))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "%s: is longer than the training at step %" PRIu64
                          "; use a shorter length, or later times",
                          kind->text, time);
    wanted.first = (uint64_t)floor(profile->t - profile->length) + 1;
    return find_average(index, request, &wanted, err);
}

/* One file of each kind. */
static enum phema_status add_items(struct gen_request *request, const struct gen_kind *kinds,
                                   size_t n, uint64_t time, bool is_truth, struct phema_error *err)
{
    for (size_t k = 0; k < n; k++) {
        struct gen_item *item = &request->items[request->n_items++];
        *item = (struct gen_item){.time = time, .kind = &kinds[k], .is_truth = is_truth};
        enum phema_status status = find_average_at(&item->average, request, &kinds[k], time, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* i * steps / count, rounded down, without the product */
static uint64_t time_of(const struct phema_gen_options *options, uint64_t i)
{
    if (options->times)
        return options->times[i - 1];
    return options->steps / options->count * i +
           options->steps % options->count * i / options->count;
}

static int compare_items(const void *a, const void *b)
{
    const struct gen_item *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_truth != y->is_truth)
        return x->is_truth ? 1 : -1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static enum phema_status list_items(struct gen_request *request,
                                    const struct phema_gen_options *options,
                                    struct phema_error *err)
{
    const struct gen_kind *truths = request->kinds + request->n_snapshot_kinds;
    size_t n_kinds = request->n_snapshot_kinds - (options->raw_every && !options->is_raw);
    for (uint64_t i = 1; i <= options->count; i++) {
        enum phema_status status =
            add_items(request, request->kinds, n_kinds, time_of(options, i), false, err);
        if (status)
            return status;
    }
    const struct gen_kind *raw = truths - 1;
    for (uint64_t time = options->raw_every; time && time <= options->steps;
         time += options->raw_every) {
        enum phema_status status = add_items(request, raw, 1, time, false, err);
        if (status)
            return status;
    }
    const uint64_t *times = options->n_truth_times ? options->truth_times : &options->steps;
    size_t n_times = options->n_truth_times ? options->n_truth_times : 1;
    for (size_t i = 0; i < n_times; i++) {
        enum phema_status status =
            add_items(request, truths, request->n_truth_kinds, times[i], true, err);
        if (status)
            return status;
    }
    if (request->n_items)
        qsort(request->items, request->n_items, sizeof(*request->items), compare_items);
    /* raw snapshots of a time, as one of all times and as one of the multiples, are one file */
    size_t n = 0;
    for (size_t i = 0; i < request->n_items; i++)
        if (!n || compare_items(&request->items[n - 1], &request->items[i]) != 0)
            request->items[n++] = request->items[i];
    request->n_items = n;
    return PHEMA_OK;
}

static enum phema_status check_truth_times(const struct phema_gen_options *options,
                                           struct phema_error *err)
{
    for (size_t i = 0; i < options->n_truth_times; i++) {
        uint64_t time = options->truth_times[i];
        if (time < 1 || time > options->steps)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "exact averages at (%s): expected steps from 1 to %" PRIu64
                              ", found %" PRIu64,
                              phema_setting_name(PHEMA_SET_TRUTH_AT), options->steps, time);
        for (size_t j = 0; j < i; j++) {
            if (options->truth_times[j] == time)
                return phema_fail(err, PHEMA_ERR_USAGE,
                                  "exact averages at (%s): step %" PRIu64 " is given twice",
                                  phema_setting_name(PHEMA_SET_TRUTH_AT), time);
        }
    }
    return PHEMA_OK;
}

static enum phema_status check_resets(const struct phema_gen_options *options,
                                      const struct gen_request *request, struct phema_error *err)
{
    for (size_t i = 0; i < options->n_resets; i++) {
        double at = options->resets[i].at;
        struct phema_name_buffer shown;
        if (!(at >= 1 && at < (double)options->steps && at == floor(at)))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "resets of averages (%s): expected steps from 1 to %" PRIu64
                              ", found %s",
                              phema_setting_name(PHEMA_SET_RESET_AT), options->steps - 1,
                              phema_number_format(&shown, at));
    }
    for (size_t k = 0; options->n_resets && k < request->n_snapshot_kinds; k++)
        if (phema_shape_has_begin(request->kinds[k].profile.shape))
            return phema_fail(
                err, PHEMA_ERR_USAGE,
                "%s: is no average that is kept step by step, and cannot be reset (%s)",
                request->kinds[k].text, phema_setting_name(PHEMA_SET_RESET_AT));
    return PHEMA_OK;
}

static enum phema_status count_files(uint64_t *n_files, const struct gen_request *request,
                                     const struct phema_gen_options *options,
                                     struct phema_error *err)
{
    uint64_t n_snapshot_kinds = request->n_snapshot_kinds, n_truth_kinds = request->n_truth_kinds;
    if (n_snapshot_kinds > MAX_AVERAGES || n_truth_kinds > MAX_AVERAGES)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected at most %u widths and profiles, found "
                          "%" PRIu64,
                          MAX_AVERAGES,
                          n_truth_kinds > n_snapshot_kinds ? n_truth_kinds : n_snapshot_kinds);
    uint64_t n_truth_times = options->n_truth_times ? options->n_truth_times : 1, n_truths;
    uint64_t n_raw = options->raw_every ? options->steps / options->raw_every : 0;
    if (!phema_size_mul(n_files, options->count, n_snapshot_kinds) ||
        !phema_size_mul(&n_truths, n_truth_times, n_truth_kinds) ||
        !phema_size_add(n_files, *n_files, n_truths) || !phema_size_add(n_files, *n_files, n_raw) ||
        *n_files > MAX_FILES)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "%" PRIu64 " snapshots of %" PRIu64 " widths are more than %u files",
                          options->count, n_snapshot_kinds, MAX_FILES);
    return PHEMA_OK;
}

static enum phema_status allocate(struct gen_request *request,
                                  const struct phema_gen_options *options, struct phema_error *err)
{
    uint64_t n_files = 0;
    enum phema_status status = count_files(&n_files, request, options, err);
    if (status)
        return status;
    size_t n_kinds = request->n_snapshot_kinds + request->n_truth_kinds;
    request->kinds = calloc(n_kinds + 1, sizeof(*request->kinds));
    request->averages = calloc(MAX_AVERAGES, sizeof(*request->averages));
    request->items = calloc(n_files + 1, sizeof(*request->items));
    request->stops = calloc(n_files + options->n_resets + 1, sizeof(*request->stops));
    if (request->kinds && request->averages && request->items && request->stops)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the list of files");
}

/* Merges the times of the items with the resets. */
static void list_stops(struct gen_request *request, const struct phema_gen_options *options)
{
    const struct gen_item *item = request->items, *end = item + request->n_items;
    const struct phema_reset *reset = options->resets, *no_reset = reset + options->n_resets;
    while (item < end) {
        bool is_reset = reset < no_reset && reset->at <= (double)item->time;
        struct gen_stop *stop = &request->stops[request->n_stops++];
        *stop = (struct gen_stop){is_reset ? (uint64_t)reset->at : item->time, is_reset, is_reset};
        for (; reset < no_reset && reset->at == (double)stop->step;)
            reset++;
        for (; item < end && item->time == stop->step; item++)
            stop->shows_parameters = stop->shows_parameters || item->average == GEN_RAW;
    }
}

enum phema_status gen_request_init(struct gen_request *request,
                                   const struct phema_gen_options *options, struct phema_error *err)
{
    *request = (struct gen_request){0};
    const struct phema_gen_kinds *snapshots = &options->snapshots, *truths = &options->truths;
    request->n_snapshot_kinds =
        snapshots->n_sigmas + snapshots->n_profiles + (options->is_raw || options->raw_every);
    request->n_truth_kinds = truths->n_sigmas + truths->n_profiles;
    enum phema_status status = check_truth_times(options, err);
    if (!status)
        status = allocate(request, options, err);
    if (!status)
        status = resolve_kinds(request->kinds, request->n_snapshot_kinds, snapshots,
                               options->update_every, err);
    if (!status)
        status = check_resets(options, request, err);
    for (size_t k = 0; !status && k < request->n_snapshot_kinds; k++)
        request->kinds[k].hides_update_every = options->hides_update_every;
    if (!status)
        status = resolve_kinds(request->kinds + request->n_snapshot_kinds, request->n_truth_kinds,
                               truths, 1, err);
    for (size_t k = 0; !status && k < request->n_snapshot_kinds + request->n_truth_kinds; k++) {
        struct gen_kind *kind = &request->kinds[k]; /* those that need one average for all times */
        struct gen_average wanted = {.profile = kind->profile,
                                     .first = 1,
                                     .last = options->steps,
                                     .is_reset =
                                         options->n_resets && k < request->n_snapshot_kinds};
        if (kind->profile.shape == PHEMA_SHAPE_RAW)
            kind->average = GEN_RAW;
        else if (!phema_shape_has_begin(kind->profile.shape))
            status = find_average(&kind->average, request, &wanted, err);
    }
    if (!status)
        status = list_items(request, options, err);
    if (!status)
        list_stops(request, options);
    return status;
}

void gen_request_clear(struct gen_request *request)
{
    free(request->kinds);
    free(request->averages);
    free(request->items);
    free(request->stops);
    *request = (struct gen_request){0};
}
