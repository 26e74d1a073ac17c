// SPDX-License-Identifier: Apache-2.0
/* lone_profile.c - how one average alone was kept. The sample tells only how alike neighbours are: a usual
 * decay is believed where nothing else is nearly as likely, and all tensors and times agree. */
#include "lone_profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "series_search.h"
#include "usual_averages.h"

/* ---- Closed forms and usual averages ---- */

#define LEAST_TIMES   ((size_t)8)
#define MOST_TIMES    ((size_t)24) /* the newest */
#define MOST_RATED    ((size_t)256)
#define LEAST_OVERLAP 1.0  /* half-life over the time between snapshots */
#define MOST_OVERLAP  0.33 /* half-life over the time of the newest snapshot */
#define CLEARLY       1.0  /* likelihood an element, over those of raw parameters and of growth */
#define AS_LIKELY     0.3  /* as the likeliest half-life */
#define UNLIKELY      0.4  /* below the best one */
#define SAME          1.25 /* factor between half-lives that are one */
#define MOST_Z        1.6
#define GRID          1.189207115002721 /* 2^(1/4): of half-lives */

struct rated {
    struct usual_average average;
    double likelihood, half_life; /* of the newest snapshot */
};

struct alone {
    struct search search;
    double spacing, end;          /* times between snapshots, of the newest */
    double half_life, likelihood; /* the likeliest exponential average */
    double others;                /* likelihood of raw parameters, or of averages that grow */
    struct rated *rated;          /* [n] */
    size_t n;
};

/* The newest snapshots, at most so many: from this one on. */
static size_t newest(const struct alone *alone, size_t most)
{
    size_t n = alone->search.series->n;
    return n > most ? n - most : 0;
}

/* The likeliest half-life of the snapshots from the first to before the end; NaN: none is possible.
 *   likelihood  out: of it */
static double find_half_life(double *likelihood, struct alone *alone, size_t first, size_t end)
{
    struct phema_profile ema = {.shape = PHEMA_SHAPE_EMA, .update_every = 1};
    double best = PHEMA_UNKNOWN;
    *likelihood = -HUGE_VAL;
    ema.half_life = alone->spacing / 4;
    while (ema.half_life < alone->end) {
        double rated = search_rate_shape_of(&alone->search, ema, first, end);
        if (rated > *likelihood) {
            *likelihood = rated;
            best = ema.half_life;
        }
        ema.half_life *= GRID;
    }
    return best;
}

/* The likeliest of each closed form. */
static void rate_shapes(struct alone *alone)
{
    struct phema_profile growing = {.update_every = 1},
                         raw = {.shape = PHEMA_SHAPE_RAW, .length = alone->search.series->step};
    struct phema_error impossible;
    size_t first = newest(alone, MOST_TIMES), n = alone->search.series->n;
    alone->half_life = find_half_life(&alone->likelihood, alone, first, n);
    alone->others = search_rate_shape_of(&alone->search, raw, first, n);
    double half_life = alone->spacing / 4;
    while (half_life < alone->end) {
        if (!phema_gamma_from_half_life(&growing.gamma, half_life, alone->end, &impossible))
            alone->others =
                fmax(alone->others, search_rate_shape_of(&alone->search, growing, first, n));
        half_life *= GRID;
    }
}

static void rate_average(struct alone *alone, struct phema_specs *specs,
                         const struct usual_average *average)
{
    struct search *search = &alone->search;
    if (search->status || alone->n == MOST_RATED || strcmp(average->spec, "raw") == 0 ||
        !search_set_newest(search, specs, average->spec, MOST_TIMES))
        return;
    double half_life = half_life_of(&search->tried.profiles[search->tried.n - 1]);
    alone->rated[alone->n++] = (struct rated){*average, search_likelihood(search), half_life};
}

static void rate_averages(struct alone *alone)
{
    struct phema_specs specs = {.arena = &alone->search.memory};
    struct usual_average usual, average;
    for (size_t i = 0; usual_average(&usual, i, alone->end); i++) {
        rate_average(alone, &specs, &usual);
        for (size_t j = 0; usual_average_warmup(&average, usual.spec, j, alone->end); j++)
            rate_average(alone, &specs, &average);
    }
}

static bool is_same(double half_life, double other)
{
    return half_life < SAME * other && other < SAME * half_life;
}

/* The likeliest, unless one that is shorter or longer is nearly as likely; NULL: none. */
static const struct rated *choose(const struct alone *alone)
{
    const struct rated *best = NULL;
    for (size_t i = 0; i < alone->n; i++)
        if (!best || alone->rated[i].likelihood > best->likelihood)
            best = &alone->rated[i];
    if (!best || best->likelihood < alone->likelihood - AS_LIKELY ||
        best->likelihood < alone->others + CLEARLY ||
        best->half_life < LEAST_OVERLAP * alone->spacing ||
        best->half_life > MOST_OVERLAP * alone->end)
        return NULL;
    for (size_t i = 0; i < alone->n; i++)
        if (!is_same(alone->rated[i].half_life, best->half_life) &&
            alone->rated[i].likelihood > best->likelihood - UNLIKELY)
            return NULL;
    return best;
}

static bool explains(struct search *search, const struct rated *best)
{
    struct phema_specs specs = {.arena = &search->memory};
    return search_set_newest(search, &specs, best->average.spec, MOST_TIMES) &&
           search_fit(search, &search->tried, COMPARE_SNAPSHOTS).max_z < MOST_Z;
}

/* ---- Whether all tensors and times tell one half-life ---- */

/* Parameters that keep their direction look like a longer average. How far they keep it differs
 * between tensors and changes as a training goes on. The half-life of an average does neither. The
 * limits were chosen on 86 decays (docs/numerics.md). */
#define SHORTER    0.6          /* of the half-life: another one */
#define HALVED     ((size_t)48) /* the newest */
#define LEAST_PART ((size_t)32) /* elements that are compared */
#define MOST_PARTS ((size_t)64)

/* Elements of a sample, from the first to before the end.
 *   part  out: points into the sample and the arena */
static bool copy_part(struct phema_sample *part, const struct phema_sample *sample, size_t first,
                      size_t end, struct phema_arena *memory)
{
    size_t n_elems = end - first;
    double squares = 0;
    *part = *sample;
    part->n_elems = n_elems;
    part->tensors = sample->tensors + first;
    part->spacings = sample->spacings + first;
    part->values = phema_arena_array(memory, sample->n * n_elems, sizeof(*part->values));
    part->rounding = phema_arena_array(memory, sample->n, sizeof(*part->rounding));
    if (memory->is_failed)
        return false;
    for (size_t e = 0; e < n_elems; e++)
        squares += part->spacings[e] * part->spacings[e];
    for (size_t k = 0; k < sample->n; k++) {
        memcpy(part->values + k * n_elems, sample->values + k * sample->n_elems + first,
               n_elems * sizeof(*part->values));
        part->rounding[k] = sqrt(squares / (12 * (double)n_elems) / sample->mean_square);
    }
    return true;
}

/* The likeliest half-life by some elements; NaN: they do not tell it. */
static double find_half_life_of(struct alone *alone, size_t first, size_t end)
{
    struct search *search = &alone->search;
    const struct phema_sample *sample = search->sample;
    struct phema_arena memory = {0};
    struct phema_sample part;
    double half_life = PHEMA_UNKNOWN, unused;
    if (copy_part(&part, sample, first, end, &memory)) {
        search->sample = &part;
        half_life = find_half_life(&unused, alone, newest(alone, MOST_TIMES), search->series->n);
        search->sample = sample;
    } else if (!search->status) {
        search->status = phema_fail_memory(search->err);
    }
    phema_arena_clear(&memory);
    return half_life;
}

/* Where another half-life is the likeliest. */
struct dissent {
    double half_life;                  /* NaN: nowhere */
    const struct phema_tensor *tensor; /* NULL: one half of the snapshots, ... */
    const char *half;                  /* ... this one */
};

/* Small tensors count together with the next ones. */
static struct dissent find_shorter_tensor(struct alone *alone, double half_life)
{
    const struct phema_sample *sample = alone->search.sample;
    size_t n = sample->n_elems, least = n / MOST_PARTS, first = 0;
    least = least < LEAST_PART ? LEAST_PART : least;
    for (size_t end = least; end <= n; end++) {
        if (end - first < least || (end < n && sample->tensors[end] == sample->tensors[end - 1]))
            continue;
        double other = find_half_life_of(alone, first, end);
        size_t tensor = sample->tensors[first];
        if (other < SHORTER * half_life)
            return (struct dissent){.half_life = other,
                                    .tensor = &alone->search.series->tensors[tensor].tensor};
        first = end;
    }
    return (struct dissent){.half_life = PHEMA_UNKNOWN};
}

/* Where trainings settle, the older half looks like a longer average. */
static struct dissent find_dissent(struct alone *alone, double half_life)
{
    size_t n = alone->search.series->n, first = newest(alone, HALVED), middle = (first + n) / 2;
    double unused, older = find_half_life(&unused, alone, first, middle);
    double newer = find_half_life(&unused, alone, middle, n);
    if (newer < SHORTER * half_life || newer > SAME * half_life)
        return (struct dissent){.half_life = newer, .half = "newer"};
    if (older < half_life / SAME)
        return (struct dissent){.half_life = older, .half = "older"};
    return find_shorter_tensor(alone, half_life);
}

enum phema_status finding_finish(struct finding *found, const char *spec, struct phema_strbuf *why,
                                 struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(why, err);
    if (!status) {
        found->spec = spec ? phema_arena_copy(&found->memory, spec, strlen(spec)) : NULL;
        found->why = phema_arena_copy(&found->memory, why->data, why->size);
        status = found->memory.is_failed ? phema_fail_memory(err) : PHEMA_OK;
    }
    phema_strbuf_clear(why);
    return status;
}

/* ---- Together ---- */

/* Two digits. */
static const char *show_half_life(struct phema_name_buffer *shown, double half_life)
{
    double unit_digit = pow(10, floor(log10(half_life)) - 1);
    return phema_number_format(shown, unit_digit * round(half_life / unit_digit));
}

static void write_dissent(struct phema_strbuf *why, const struct dissent *dissent, const char *unit)
{
    struct phema_name_buffer shown;
    const struct phema_tensor *tensor = dissent->tensor;
    if (tensor)
        phema_strbuf_printf(why, ", but in tensor '%s'",
                            phema_name_escape(&shown, tensor->name, tensor->name_size));
    else
        phema_strbuf_printf(why, ", but in the %s half", dissent->half);
    phema_strbuf_printf(why,
                        " as those of %s %s; parameters that keep their direction look like a "
                        "longer average",
                        show_half_life(&shown, dissent->half_life), unit);
}

static enum phema_status explain_alone(struct finding *found, struct alone *alone, const char *unit,
                                       struct phema_error *err)
{
    struct phema_strbuf why = {0};
    struct phema_name_buffer shown;
    struct dissent dissent = {.half_life = PHEMA_UNKNOWN};
    const struct rated *best = choose(alone);
    if (best && !explains(&alone->search, best))
        best = NULL;
    if (best)
        dissent = find_dissent(alone, best->half_life);
    if (alone->search.status)
        return alone->search.status;
    if (!isfinite(alone->likelihood) || alone->likelihood <= alone->others) {
        phema_strbuf_puts(&why, "the snapshots are not as alike as any exponential average");
        return finding_finish(found, NULL, &why, err);
    }
    phema_strbuf_printf(&why,
                        "neighbouring snapshots are as alike as those of a half-life of %s %s",
                        show_half_life(&shown, alone->half_life), unit);
    if (!best)
        phema_strbuf_puts(&why, ", but others are nearly as likely");
    else if (isnan(dissent.half_life))
        phema_strbuf_puts(&why, "; raw parameters beside them would tell more");
    else
        write_dissent(&why, &dissent, unit);
    bool is_found = best && isnan(dissent.half_life);
    return finding_finish(found, is_found ? best->average.spec : NULL, &why, err);
}

/* series: with the profiles of any exponential average */
static enum phema_status rate_alone(struct finding *found, const struct phema_series *series,
                                    const struct phema_sample *sample, struct phema_error *err)
{
    struct phema_series_checks checks = {.z = NULL};
    const struct phema_snapshot *snapshots = series->snapshots;
    size_t n = series->n;
    struct alone alone = {.search = {.series = series,
                                     .snapshots = snapshots,
                                     .sample = sample,
                                     .checks = &checks,
                                     .likelihood = PHEMA_UNKNOWN,
                                     .err = err},
                          .spacing = (snapshots[n - 1].time - snapshots[0].time) / (double)(n - 1),
                          .end = snapshots[n - 1].time};
    enum phema_status status = search_open(&alone.search);
    alone.rated = phema_arena_array(&alone.search.memory, MOST_RATED, sizeof(*alone.rated));
    if (!status && !alone.rated)
        status = phema_fail_memory(err);
    if (!status) {
        rate_shapes(&alone);
        if (strcmp(series->unit, "steps") == 0 && alone.end <= USUAL_MOST_STEPS)
            rate_averages(&alone);
        status = explain_alone(found, &alone, series->unit, err);
    }
    search_close(&alone.search);
    phema_series_checks_clear(&checks);
    return status;
}

/* Whether there is one snapshot of each time, and of enough times. */
static bool is_one_average(const struct phema_series *series)
{
    for (size_t k = 1; k < series->n; k++)
        if (series->snapshots[k].time == series->snapshots[k - 1].time)
            return false;
    return series->n >= LEAST_TIMES;
}

enum phema_status lone_profile_find(struct finding *found, const struct phema_series *bare,
                                    const struct phema_series_options *options,
                                    struct phema_error *err)
{
    if (!is_one_average(bare)) {
        found->why = "there are no raw parameters beside averages, and not one average of eight "
                     "times alone";
        return PHEMA_OK;
    }
    char any[64];
    const char *const specs[] = {any};
    struct phema_series_options labelled = *options;
    struct phema_series *series = NULL;
    struct phema_sample sample = {0}, parameters = {0};
    (void)snprintf(any, sizeof(any), "ema:half-life=%.6g",
                   (bare->snapshots[bare->n - 1].time - bare->snapshots[0].time) / (double)bare->n);
    labelled.input_profiles = specs;
    labelled.n_input_profiles = 1;
    labelled.compares_samples = labelled.may_be_sampled = true;
    enum phema_status status = phema_series_open(&series, &labelled, err);
    if (!status)
        status = phema_sample_read(&sample, series, false, options->max_ram_bytes, err);
    if (!status)
        status = phema_sample_read_parameters(&parameters, series, options->max_ram_bytes, err);
    bool has_statistics = parameters.n_elems >= LEAST_PART; /* which are left out of them */
    if (!status)
        status = rate_alone(found, series, has_statistics ? &parameters : &sample, err);
    if (status == PHEMA_NO) { /* nothing can be compared */
        struct phema_strbuf why = {0};
        phema_strbuf_puts(&why, err->message);
        status = finding_finish(found, NULL, &why, err);
    }
    phema_sample_clear(&parameters);
    phema_sample_clear(&sample);
    phema_series_close(series);
    return status;
}
