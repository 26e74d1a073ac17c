// SPDX-License-Identifier: Apache-2.0
/* decays.c - finds the averages of a series that have raw parameters beside them, fits their decays,
 * and compares these with their profiles. */
#include "decays.h"

#include <math.h>
#include <string.h>

/* ---- Averages and the raw parameters beside them ---- */

static bool is_raw(const struct phema_snapshot *snapshot)
{
    return snapshot->kind && strcmp(snapshot->kind, "raw") == 0;
}

/* The raw parameters of a time; SIZE_MAX: none. */
static size_t find_raw(const struct phema_series *series, double time)
{
    size_t low = 0, high = series->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (series->snapshots[middle].time < time)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < series->n && series->snapshots[low].time == time; low++)
        if (is_raw(&series->snapshots[low]))
            return low;
    return SIZE_MAX;
}

/* Pairs at two times at least. */
static bool has_pairs(const struct phema_series *series)
{
    size_t n = 0;
    for (size_t k = 0; k < series->n && n < 2; k++)
        n += series->snapshots[k].checkpoint && !is_raw(&series->snapshots[k]) &&
             find_raw(series, series->snapshots[k].time) != SIZE_MAX;
    return n > 1;
}

static const char *name_of(const struct phema_snapshot *snapshot)
{
    return snapshot->key ? snapshot->key : snapshot->spec ? snapshot->spec : "average";
}

/* One is the other or its part: "ema" and "ema.module". */
static bool are_names_of_one(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b), size = size_a < size_b ? size_a : size_b;
    return strncmp(a, b, size) == 0 && (size_a == size_b || (size_a > size ? a : b)[size] == '.');
}

/* The snapshot of the series that a pair of the source is. */
static const struct phema_snapshot *find_label(const struct doctor *doctor,
                                               const struct phema_snapshot *average)
{
    const struct phema_series *series = doctor->series;
    if (doctor->averages.series == series)
        return average;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        const char *key = snapshot->key ? snapshot->key : series->key;
        if (snapshot->time == average->time && !is_raw(snapshot) &&
            are_names_of_one(key, name_of(average)))
            return snapshot;
    }
    return NULL;
}

static bool alloc_pairs(struct pairs *pairs, size_t n, struct phema_arena *memory)
{
    pairs->averages = phema_arena_array(memory, n, sizeof(*pairs->averages));
    pairs->raws = phema_arena_array(memory, n, sizeof(*pairs->raws));
    pairs->labels = phema_arena_array(memory, n, sizeof(struct phema_snapshot *));
    pairs->ends = phema_arena_array(memory, n, sizeof(*pairs->ends));
    pairs->set.steps = phema_arena_array(memory, n, sizeof(*pairs->set.steps));
    return !memory->is_failed;
}

static struct pairs *find_pairs(struct doctor *doctor, const char *name)
{
    struct phema_arena *memory = &doctor->out->memory;
    for (size_t i = 0; i < doctor->n; i++)
        if (strcmp(doctor->pairs[i].set.name, name) == 0)
            return &doctor->pairs[i];
    struct pairs *items =
        phema_arena_grow(memory, doctor->pairs, doctor->n, sizeof(*doctor->pairs));
    char *kept = phema_arena_copy(memory, name, strlen(name));
    if (!items || !kept)
        return NULL;
    doctor->pairs = items;
    struct pairs *pairs = &items[doctor->n++];
    *pairs = (struct pairs){.set = {.name = kept}};
    return alloc_pairs(pairs, doctor->averages.series->n, memory) ? pairs : NULL;
}

/* Of a series that leaves sets out, only those that it has. */
static enum phema_status list_pairs(struct doctor *doctor, struct phema_error *err)
{
    const struct phema_series *source = doctor->averages.series;
    for (size_t k = 0; k < source->n; k++) {
        const struct phema_snapshot *snapshot = &source->snapshots[k];
        size_t raw = is_raw(snapshot) ? SIZE_MAX : find_raw(doctor->raws.series, snapshot->time);
        const struct phema_snapshot *label = find_label(doctor, snapshot);
        if (raw == SIZE_MAX || !label)
            continue;
        struct pairs *pairs = find_pairs(doctor, name_of(snapshot));
        if (!pairs)
            return phema_fail_memory(err);
        size_t n = pairs->n;
        if (n && snapshot->time <= pairs->ends[n - 1])
            continue;
        pairs->averages[n] = k;
        pairs->raws[n] = raw;
        pairs->labels[n] = label;
        pairs->ends[n] = snapshot->time;
        pairs->n++;
    }
    return PHEMA_OK;
}

/* ---- Fits ---- */

static double largest(const double *values, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, values[i]);
    return most > 0 ? most : 1;
}

static enum phema_status fit_pairs(struct pairs *pairs, const struct doctor *doctor,
                                   struct phema_error *err)
{
    struct phema_arena *memory = &doctor->out->memory;
    const struct phema_sample *sample = doctor->averages.sample, *raw_sample = doctor->raws.sample;
    size_t n = pairs->n;
    const double **rows = phema_arena_array(memory, 2 * n, sizeof(double *));
    double *fineness = phema_arena_array(memory, 2 * n, sizeof(*fineness));
    double *scratch = phema_arena_array(memory, sample->n_elems, sizeof(*scratch));
    struct phema_decay_interval *found = phema_arena_array(memory, n, sizeof(*found));
    if (memory->is_failed)
        return phema_fail_memory(err);
    double coarsest = largest(sample->rounding, sample->n);
    for (size_t k = 0; k < n; k++) {
        rows[k] = sample->values + pairs->averages[k] * sample->n_elems;
        rows[n + k] = raw_sample->values + pairs->raws[k] * sample->n_elems;
        fineness[k] = sample->rounding[pairs->averages[k]] / coarsest;
        fineness[n + k] = raw_sample->rounding[pairs->raws[k]] / coarsest;
    }
    const struct phema_decay_rows all = {.averages = rows,
                                         .raws = rows + n,
                                         .n = n,
                                         .n_elems = sample->n_elems,
                                         .tensors = sample->tensors,
                                         .spacings = sample->spacings,
                                         .fineness = fineness};
    pairs->set.margin = phema_decay_fit(found, &all, scratch);
    pairs->set.n = n - 1;
    for (size_t k = 0; k + 1 < n; k++)
        pairs->set.steps[k].fit = found[k];
    return PHEMA_OK;
}

/* ---- Claims ---- */

static bool has_profile(const struct phema_snapshot *label)
{
    return label->kind && label->spec && label->profile.t > 0;
}

#define SAME_PLACE 0.3

/* Whether a training that was resumed there took the average for its parameters: then all that is
 * new in the average began at the average itself, and 1 - kept is its place. */
static bool is_replaced(const struct phema_decay_step *step, double place)
{
    return phema_decay_refutes(&step->fit, step->claimed, DECAY_ONE_DIFFERS) < 0 &&
           phema_decay_refutes(&step->fit, 1 - place, DECAY_ONE_DIFFERS) == 0 &&
           fabs(step->fit.place - place) < SAME_PLACE * place;
}

static void claim(struct pairs *pairs)
{
    struct phema_decay_set *set = &pairs->set;
    for (size_t k = 0; k < set->n; k++) {
        const struct phema_snapshot *begin = pairs->labels[k], *end = pairs->labels[k + 1];
        struct phema_decay_step *step = &set->steps[k];
        step->from = begin->named_time;
        step->to = end->named_time;
        step->length = pairs->ends[k + 1] - pairs->ends[k];
        bool is_one = has_profile(begin) && has_profile(end) && strcmp(begin->spec, end->spec) == 0;
        step->claimed = is_one ? decay_kept_by(&end->profile, begin->time) : PHEMA_UNKNOWN;
        if (isnan(step->claimed))
            continue;
        set->claimed = end->spec;
        step->is_replaced = is_replaced(step, decay_place_of(&end->profile, begin->time));
        if (step->is_replaced)
            step->fit = phema_decay_unknown;
    }
}

static enum phema_status examine(struct doctor *doctor, struct phema_error *err)
{
    struct phema_decays *out = doctor->out;
    enum phema_status status = list_pairs(doctor, err);
    out->sets = phema_arena_array(&out->memory, doctor->n + 1, sizeof(*out->sets));
    if (!status && !out->sets)
        status = phema_fail_memory(err);
    for (size_t i = 0; i < doctor->n && !status; i++) {
        struct pairs *pairs = &doctor->pairs[i];
        if (pairs->n < 2)
            continue;
        status = fit_pairs(pairs, doctor, err);
        if (status)
            break;
        claim(pairs);
        status = decay_set_explain(&pairs->set, pairs->ends, &out->memory, err);
        decay_set_judge(&pairs->set);
        if (!status && !pairs->set.claimed)
            decays_propose(doctor, pairs);
        if (!status && pairs->set.is_refuted && !out->reason)
            status = decays_accuse(doctor, pairs, err);
        out->sets[out->n++] = pairs->set;
    }
    return status;
}

/* ---- The raw parameters that the series leaves out ---- */

/* Series that are opened once more. */
struct opened {
    struct phema_series *both, *raws;
    struct phema_sample sample, raw_sample;
};

/* The same series without profiles, with all of its sets or, where the averages stand alone, with the
 * raw parameters of their names; NULL: it cannot be opened so. */
static enum phema_status open_again(struct phema_series **out, const struct doctor *doctor,
                                    bool takes_raw, struct phema_error *err)
{
    static const char *const raw[] = {"raw"};
    struct phema_series_options options = *doctor->options;
    struct phema_error unused = {0};
    options.key = NULL;
    options.may_lack_key = false;
    options.use = PHEMA_USE_ALL;
    options.needs_no_profiles = true;
    options.input_profiles = raw;
    options.n_input_profiles = takes_raw;
    options.n_input_sigmas = options.n_resets = 0;
    options.update_every = 0;
    options.compares_samples = true;
    options.keeps_scales = false;
    options.like = takes_raw ? doctor->series : NULL;
    enum phema_status status = phema_series_open(out, &options, &unused);
    return status == PHEMA_ERR_RESOURCE ? phema_fail(err, status, "%s", unused.message) : PHEMA_OK;
}

static bool may_open(const struct doctor *doctor)
{
    const struct phema_series_options *options = doctor->options;
    const struct phema_series *series = doctor->series;
    return options && !options->is_alone && !options->is_conversion && series->n > 1 &&
           series->snapshots[0].checkpoint && !series->snapshots[0].is_compressed;
}

static bool chooses_sets(const struct phema_series_options *options)
{
    return (options->key && strcmp(options->key, ".") != 0) || options->use == PHEMA_USE_AVERAGES;
}

/* Whether samples of both are of the same elements; compressed files choose others. Some times may lack
 * raw parameters: trainers often keep fewer. */
static bool are_alike(const struct phema_series *a, const struct phema_series *b)
{
    bool is_alike = a->n_tensors == b->n_tensors;
    for (size_t k = 0; k < b->n; k++)
        is_alike &= !b->snapshots[k].is_compressed;
    for (size_t i = 0; is_alike && i < a->n_tensors; i++) {
        const struct phema_tensor *left = &a->tensors[i].tensor, *right = &b->tensors[i].tensor;
        is_alike = left->n_elems == right->n_elems && left->name_size == right->name_size &&
                   memcmp(left->name, right->name, left->name_size) == 0;
    }
    return is_alike;
}

static enum phema_status read_sample(struct source *source, struct phema_sample *own, bool is_plain,
                                     uint64_t max_ram_bytes, struct phema_error *err)
{
    struct phema_error why = {0};
    enum phema_status status =
        phema_sample_read(own, source->series, is_plain, max_ram_bytes, &why);
    source->sample = own;
    return status && status != PHEMA_NO ? phema_fail(err, status, "%s", why.message) : status;
}

/* PHEMA_NO: no average has raw parameters beside it, or they cannot be read. */
static enum phema_status find_sources(struct doctor *doctor, struct opened *opened,
                                      const struct phema_sample *sample, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    struct source *averages = &doctor->averages, *raws = &doctor->raws;
    uint64_t max_ram_bytes = doctor->options ? doctor->options->max_ram_bytes : 0;
    bool has_both = has_pairs(doctor->series);
    averages->series = raws->series = doctor->series;
    averages->sample = sample;
    if (!has_both && may_open(doctor) && doctor->series->leaves_out_raw)
        status = open_again(&opened->raws, doctor, true, err);
    else if (!has_both && may_open(doctor) && chooses_sets(doctor->options))
        status = open_again(&opened->both, doctor, false, err);
    if (status)
        return status;
    if (opened->raws && are_alike(doctor->series, opened->raws)) {
        opened->raws->n_sampled_with = doctor->series->n;
        raws->series = opened->raws;
    } else if (opened->both && has_pairs(opened->both)) {
        *averages = (struct source){.series = raws->series = opened->both};
    } else if (!has_both) {
        return PHEMA_NO;
    }
    bool is_apart = raws->series != averages->series; /* samples must have the same columns */
    if (!averages->sample || (is_apart && !sample->is_plain))
        status = read_sample(averages, &opened->sample, is_apart, max_ram_bytes, err);
    *raws = (struct source){raws->series, averages->sample};
    if (!status && is_apart)
        status = read_sample(raws, &opened->raw_sample, true, max_ram_bytes, err);
    bool is_alike = status || raws->sample->n_elems == averages->sample->n_elems;
    return is_alike ? status : PHEMA_NO;
}

PHEMA_FALLIBLE phema_decays_find(struct phema_decays *out, const struct phema_series *series,
                                 const struct phema_series_options *options,
                                 const struct phema_sample *sample, struct phema_error *err)
{
    struct doctor doctor = {.series = series, .options = options, .out = out};
    struct opened opened = {.both = NULL};
    *out = (struct phema_decays){.from = PHEMA_UNKNOWN};
    enum phema_status status = find_sources(&doctor, &opened, sample, err);
    if (!status)
        status = examine(&doctor, err);
    phema_sample_clear(&opened.sample);
    phema_sample_clear(&opened.raw_sample);
    phema_series_close(opened.both);
    phema_series_close(opened.raws);
    if (status)
        phema_decays_clear(out);
    return status == PHEMA_NO ? PHEMA_OK : status;
}

const struct phema_decay_set *phema_decays_find_unclaimed(size_t *n,
                                                          const struct phema_decays *decays)
{
    const struct phema_decay_set *last = NULL;
    *n = 0;
    for (size_t i = 0; i < decays->n; i++)
        if (!decays->sets[i].claimed) {
            last = &decays->sets[i];
            ++*n;
        }
    return last;
}

void phema_decays_clear(struct phema_decays *decays)
{
    phema_arena_clear(&decays->memory);
    *decays = (struct phema_decays){.n = 0};
}
