// SPDX-License-Identifier: Apache-2.0
/* auto_profile.c - --input-profile auto: how averages were kept where nothing says it. Raw parameters
 * beside them tell (decays.c). Of averages alone the sample tells only how alike neighbours are, and
 * a usual decay is believed where nothing else is nearly as likely. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"
#include "series_search.h"
#include "usual_averages.h"

/* ---- Averages alone ---- */

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

/* The likeliest of each closed form. */
static void rate_shapes(struct alone *alone)
{
    struct phema_profile ema = {.shape = PHEMA_SHAPE_EMA, .update_every = 1};
    struct phema_profile growing = {.update_every = 1},
                         raw = {.shape = PHEMA_SHAPE_RAW, .length = alone->search.series->step};
    struct phema_error impossible;
    alone->likelihood = -HUGE_VAL;
    alone->others = search_rate_shape(&alone->search, raw, MOST_TIMES);
    double half_life = alone->spacing / 4;
    while (half_life < alone->end) {
        ema.half_life = half_life;
        double likelihood = search_rate_shape(&alone->search, ema, MOST_TIMES);
        if (likelihood > alone->likelihood) {
            alone->likelihood = likelihood;
            alone->half_life = half_life;
        }
        if (!phema_gamma_from_half_life(&growing.gamma, half_life, alone->end, &impossible))
            alone->others =
                fmax(alone->others, search_rate_shape(&alone->search, growing, MOST_TIMES));
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

/* What was found, and how. */
struct finding {
    const char *spec;    /* NULL: none */
    const char *why;     /* or the reason why none is */
    const char *doubted; /* phema_series.doubted */
    const char *from;    /* a named time from which on there is one; NULL: unknown */
    struct phema_arena memory;
};

static enum phema_status finish(struct finding *found, const char *spec, struct phema_strbuf *why,
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

static enum phema_status explain_alone(struct finding *found, struct alone *alone, const char *unit,
                                       struct phema_error *err)
{
    struct phema_strbuf why = {0};
    struct phema_name_buffer shown;
    double unit_digit = pow(10, floor(log10(alone->half_life)) - 1);
    const char *half_life =
        phema_number_format(&shown, unit_digit * round(alone->half_life / unit_digit));
    const struct rated *best = choose(alone);
    if (best && !explains(&alone->search, best))
        best = NULL;
    if (alone->search.status)
        return alone->search.status;
    if (best)
        phema_strbuf_printf(&why,
                            "neighbouring snapshots are as alike as those of a half-life of "
                            "%s %s; raw parameters beside them would tell more",
                            half_life, unit);
    else if (isfinite(alone->likelihood) && alone->likelihood > alone->others)
        phema_strbuf_printf(&why,
                            "neighbouring snapshots are as alike as those of a half-life of "
                            "%s %s, but others are nearly as likely",
                            half_life, unit);
    else
        phema_strbuf_puts(&why, "the snapshots are not as alike as any exponential average");
    return finish(found, best ? best->average.spec : NULL, &why, err);
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

static enum phema_status find_alone(struct finding *found, const struct phema_series *bare,
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
    struct phema_sample sample = {0};
    (void)snprintf(any, sizeof(any), "ema:half-life=%.6g",
                   (bare->snapshots[bare->n - 1].time - bare->snapshots[0].time) / (double)bare->n);
    labelled.input_profiles = specs;
    labelled.n_input_profiles = 1;
    labelled.compares_samples = labelled.may_be_sampled = true;
    enum phema_status status = phema_series_open(&series, &labelled, err);
    if (!status)
        status = phema_sample_read(&sample, series, false, options->max_ram_bytes, err);
    if (!status)
        status = rate_alone(found, series, &sample, err);
    if (status == PHEMA_NO) { /* nothing can be compared */
        struct phema_strbuf why = {0};
        phema_strbuf_puts(&why, err->message);
        status = finish(found, NULL, &why, err);
    }
    phema_sample_clear(&sample);
    phema_series_close(series);
    return status;
}

/* ---- Averages beside raw parameters ---- */

/* PHEMA_NO: there are none. */
static enum phema_status find_beside(struct finding *found, const struct phema_series *bare,
                                     const struct phema_series_options *options,
                                     struct phema_error *err)
{
    struct phema_decays decays;
    size_t n = 0;
    enum phema_status status = phema_decays_find(&decays, bare, options, NULL, err);
    if (status)
        return status;
    const struct phema_decay_set *only = phema_decays_find_unclaimed(&n, &decays);
    struct phema_strbuf why = {0};
    if (n > 1) {
        found->why = "there are several averages, and it finds the profile of one";
    } else if (n == 1) {
        phema_strbuf_puts(&why, "the raw parameters beside ");
        phema_decay_set_write(&why, only, bare->unit);
        if (only->doubted)
            found->doubted = phema_arena_copy(&found->memory, only->doubted, strlen(only->doubted));
        if (!isnan(only->fits_from)) {
            struct phema_name_buffer from;
            found->from = phema_arena_printf(&found->memory, "%s",
                                             phema_number_format(&from, only->fits_from));
            phema_strbuf_printf(&why, "; from %s on %s fits", found->from, only->fits);
        }
        status = finish(found, found->from ? NULL : only->fits, &why, err);
    } else {
        status = PHEMA_NO;
    }
    phema_decays_clear(&decays);
    return status;
}

/* ---- Together ---- */

static enum phema_status find_profile(struct finding *found,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    struct phema_series_options bare = *options;
    struct phema_series *series = NULL;
    bare.needs_no_profiles = bare.compares_samples = true;
    enum phema_status status = phema_series_open(&series, &bare, err);
    if (status)
        return status;
    bool is_known = series->has_profiles && !series->assumed;
    if (is_known) {
        found->why = "the files say how their averages were kept";
    } else {
        status = find_beside(found, series, &bare, err);
        if (status == PHEMA_NO)
            status = find_alone(found, series, options, err);
    }
    if (!status && !found->spec && !is_known)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: %sauto finds no profile: %s", series->root,
                            phema_setting_equals(PHEMA_SET_INPUT_PROFILE), found->why);
    if (found->from)
        (void)phema_suggest(err, status, PHEMA_SET_FROM, found->from);
    phema_series_close(series);
    return status;
}

/* Adds a note to those of a series, which come before its warnings. */
static enum phema_status add_note(struct phema_series *series, const struct finding *found,
                                  struct phema_error *err)
{
    size_t n = series->n_notes, n_plain = n - series->n_warnings;
    char **notes = phema_arena_array(&series->memory, n + 1, sizeof(*notes));
    char *note = found->spec ? phema_arena_printf(&series->memory, "profile: %s%s: %s",
                                                  phema_setting_equals(PHEMA_SET_INPUT_PROFILE),
                                                  found->spec, found->why)
                             : phema_arena_printf(&series->memory, "profile: %s", found->why);
    if (!notes || !note)
        return phema_fail_memory(err);
    memcpy(notes, series->notes, n_plain * sizeof(*notes));
    notes[n_plain] = note;
    memcpy(notes + n_plain + 1, series->notes + n_plain, series->n_warnings * sizeof(*notes));
    series->notes = notes;
    series->n_notes++;
    return PHEMA_OK;
}

/* Keeps the profile that was found in the memory of the series. */
static enum phema_status keep_profile(struct phema_series_options *options,
                                      struct phema_series *series, const char *spec,
                                      struct phema_error *err)
{
    const char **kept = phema_arena_array(&series->memory, 1, sizeof(*kept));
    if (!kept || !(kept[0] = phema_arena_copy(&series->memory, spec, strlen(spec))))
        return phema_fail_memory(err);
    options->input_profiles = kept;
    return PHEMA_OK;
}

static bool asks_for_auto(const struct phema_series_options *options)
{
    for (size_t i = 0; i < options->n_input_profiles; i++)
        if (strcmp(options->input_profiles[i], "auto") == 0)
            return true;
    return false;
}

PHEMA_FALLIBLE phema_series_open_auto(struct phema_series **out,
                                      struct phema_series_options *options, struct phema_error *err)
{
    if (!asks_for_auto(options))
        return phema_series_open(out, options, err);
    if (options->n_input_profiles > 1)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_PROFILE,
                                  "auto is one profile for all snapshots; give it alone");
    struct finding found = {.spec = NULL};
    options->n_input_profiles = 0;
    enum phema_status status = find_profile(&found, options, err);
    if (!status && found.spec) {
        options->input_profiles = &found.spec;
        options->n_input_profiles = 1;
    }
    if (!status)
        status = phema_series_open(out, options, err);
    if (!status && found.spec)
        status = keep_profile(options, *out, found.spec, err);
    if (!status && found.spec && found.doubted)
        (*out)->doubted = phema_arena_copy(&(*out)->memory, found.doubted, strlen(found.doubted));
    if (!status)
        status = add_note(*out, &found, err);
    phema_arena_clear(&found.memory);
    return status;
}
