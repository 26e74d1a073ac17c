// SPDX-License-Identifier: Apache-2.0
/* series_hypotheses.c - the labels that are tried for a series that does not fit its own. */
#include "series_hypotheses.h"
#include "phema/setting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_CANDIDATES ((size_t)3) /* snapshots tried */

/* Steps between two times, in the mean. Momentum keeps the direction of a training for 10 to 20
 * steps, and a loss that falls quickly for up to a hundred. Snapshots nearer to each other are
 * alike whatever they are. */
#define LEAST_APART 150

/* Steps that profiles with an update_every are followed in a hypothesis, at most: all of them
 * then take some four seconds. */
#define MOST_STEPS 2e6

/* Defaults and usual choices of EDM2, ema-pytorch and others. */
static const double usual_widths[] = {0.03, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.28};
static const double usual_decays[] = {0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999};
static const uint64_t usual_updates[] = {1, 2, 5, 10, 20, 50, 100};

static void exchange(size_t *rows, size_t a, size_t b)
{
    size_t row = rows[a];
    rows[a] = rows[b];
    rows[b] = row;
}

/* ---- One snapshot ---- */

/* The neighbour whose numbers are the same; k: none. */
static size_t find_copy(const struct search *search, size_t k)
{
    for (size_t other = 0; other < search->series->n; other++)
        if (other != k && phema_sample_distance(search->sample, k, other) == 0)
            return other;
    return k;
}

static enum phema_status try_without(struct search *search, size_t k, struct phema_error *err)
{
    size_t g = search_group_of(search, k);
    search_reset(search, search_near_begin(g), search_near_end(search, g));
    struct labels *tried = &search->tried;
    size_t at = k - search->group[search_near_begin(g)];
    for (size_t i = at; i + 1 < tried->n; i++) {
        tried->profiles[i] = tried->profiles[i + 1];
        tried->rows[i] = tried->rows[i + 1];
    }
    tried->n--;
    bool is_better;
    enum phema_status status = search_try(&is_better, search, err);
    if (status || !is_better)
        return status;
    size_t copy = find_copy(search, k);
    if (copy != k)
        phema_strbuf_printf(search_explain(search, k), "'%s' is a copy of '%s'",
                            search_label(search, k), search_label(search, copy));
    else
        phema_strbuf_printf(search_explain(search, k),
                            "'%s' does not fit the others: it is damaged, or of another training",
                            search_label(search, k));
    return PHEMA_OK;
}

/* a: of group g */
static enum phema_status try_exchange_of_two(struct search *search, size_t g, size_t a, size_t b,
                                             struct phema_error *err)
{
    size_t base = search->group[search_near_begin(g)];
    search_reset(search, search_near_begin(g), search_near_end(search, g));
    exchange(search->tried.rows, a - base, b - base);
    bool is_better;
    enum phema_status status = search_try(&is_better, search, err);
    if (!status && is_better)
        phema_strbuf_printf(search_explain(search, a), "'%s' and '%s' are exchanged",
                            search_label(search, a), search_label(search, b));
    return status;
}

/* Two snapshots of one time. */
static enum phema_status try_exchanges_within(struct search *search, size_t g,
                                              struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t a = search->group[g]; !status && a < search->group[g + 1]; a++)
        for (size_t b = a + 1; !status && b < search->group[g + 1]; b++)
            status = try_exchange_of_two(search, g, a, b, err);
    return status;
}

/* All snapshots of a time and of the next one. */
static enum phema_status try_exchange_of_times(struct search *search, size_t g,
                                               struct phema_error *err)
{
    const size_t *group = search->group;
    size_t n = group[g + 1] - group[g];
    if (g + 1 >= search->n_groups || group[g + 2] - group[g + 1] != n)
        return PHEMA_OK;
    size_t base = group[search_near_begin(g)];
    search_reset(search, search_near_begin(g), search_near_end(search, g));
    for (size_t i = 0; i < n; i++)
        exchange(search->tried.rows, group[g] + i - base, group[g + 1] + i - base);
    bool is_better;
    enum phema_status status = search_try(&is_better, search, err);
    if (!status && is_better)
        phema_strbuf_printf(search_explain(search, group[g]),
                            "the snapshots of times %.10g and %.10g are exchanged",
                            search->series->snapshots[group[g]].named_time,
                            search->series->snapshots[group[g + 1]].named_time);
    return status;
}

/* All snapshots of a time and of the next one; or one of them alone. */
static enum phema_status try_exchanges_of_times(struct search *search, size_t g,
                                                struct phema_error *err)
{
    const size_t *group = search->group;
    size_t n = group[g + 1] - group[g];
    enum phema_status status = try_exchange_of_times(search, g, err);
    bool is_even = g + 1 < search->n_groups && group[g + 2] - group[g + 1] == n;
    for (size_t i = 0; !status && is_even && n > 1 && i < n && !search->text.size; i++)
        status = try_exchange_of_two(search, g, group[g] + i, group[g + 1] + i, err);
    return status;
}

/* ---- All snapshots ---- */

static bool has_same_width(const struct phema_profile *a, const struct phema_profile *b)
{
    return a->shape == b->shape && (a->shape != PHEMA_SHAPE_POWER || a->gamma == b->gamma) &&
           (a->shape != PHEMA_SHAPE_EMA || a->half_life == b->half_life);
}

/* Snapshots at each time, if all times have the same profiles but for their ends; else 0. */
static size_t common_group(const struct search *search)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    size_t n = search->group[1];
    for (size_t g = 0; g < search->n_groups; g++) {
        if (search->group[g + 1] - search->group[g] != n)
            return 0;
        for (size_t i = 0; i < n; i++) {
            const struct phema_profile *first = &snapshots[i].profile;
            const struct phema_profile *other = &snapshots[search->group[g] + i].profile;
            if (!has_same_width(first, other) || first->update_every != other->update_every)
                return 0;
        }
    }
    return n;
}

static void print_width(struct phema_strbuf *text, const struct phema_profile *profile)
{
    if (profile->shape == PHEMA_SHAPE_RAW)
        phema_strbuf_puts(text, "raw");
    else if (profile->shape == PHEMA_SHAPE_EMA)
        phema_strbuf_printf(text, "ema:decay=%.6g", exp2(-1 / profile->half_life));
    else
        phema_strbuf_printf(text, "%.4g", phema_sigma_rel_from_gamma(profile->gamma));
}

static enum phema_status say_widths(struct search *search, size_t n, struct phema_error *err)
{
    struct phema_strbuf fit = {0}, given = {0};
    bool are_widths = true;
    for (size_t i = 0; i < n; i++) {
        are_widths = are_widths && search->tried.profiles[i].shape == PHEMA_SHAPE_POWER;
        phema_strbuf_puts(&fit, i ? "," : "");
        phema_strbuf_puts(&given, i ? "," : "");
        print_width(&fit, &search->tried.profiles[i]);
        print_width(&given, &search->series->snapshots[i].profile);
    }
    enum phema_status status = phema_strbuf_check(&fit, err);
    if (!status)
        status = phema_strbuf_check(&given, err);
    const char *kind = are_widths ? "sigma_rel " : "";
    if (!status && isnan(search->likelihood))
        phema_strbuf_printf(search_explain(search, SIZE_MAX), "the snapshots fit %s%s, not %s",
                            kind, fit.data, given.data);
    else if (!status)
        phema_strbuf_printf(
            search_explain(search, SIZE_MAX),
            "neighbouring snapshots are more alike than the label %s says: they fit %s%s, or the "
            "training kept its direction",
            given.data, kind, fit.data);
    phema_strbuf_clear(&fit);
    phema_strbuf_clear(&given);
    return status;
}

static enum phema_status try_widths(struct search *search, const struct phema_profile *widths,
                                    size_t n, struct phema_error *err)
{
    search_reset(search, search_newest_begin(search), search->n_groups);
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k], given = *profile;
        bool is_raw = widths[k % n].shape == PHEMA_SHAPE_RAW;
        *profile = widths[k % n];
        profile->t = given.t;
        profile->reset = is_raw ? 0 : given.reset;
        profile->origin = is_raw ? 0 : given.origin;
    }
    bool is_given = true;
    for (size_t i = 0; i < n; i++)
        is_given = is_given && has_same_width(&widths[i], &search->series->snapshots[i].profile);
    bool is_better = false;
    enum phema_status status = is_given ? PHEMA_OK : search_try(&is_better, search, err);
    return !status && is_better ? say_widths(search, n, err) : status;
}

/* Sets a profile to the next usual one, which keeps its end; false: there are no more. */
static bool set_usual(struct phema_profile *profile, size_t index)
{
    struct phema_profile usual = {.t = profile->t, .update_every = profile->update_every};
    struct phema_error ignored;
    size_t n_widths = ARRAY_LEN(usual_widths), n_decays = ARRAY_LEN(usual_decays);
    if (index > n_widths + n_decays)
        return false;
    if (index == n_widths + n_decays) {
        usual.shape = PHEMA_SHAPE_RAW;
    } else if (index >= n_widths) {
        usual.shape = PHEMA_SHAPE_EMA;
        usual.half_life = -M_LN2 / log(usual_decays[index - n_widths]);
    } else if (phema_gamma_from_sigma_rel(&usual.gamma, usual_widths[index], &ignored)) {
        return false; /* all are below the limit */
    }
    *profile = usual;
    return true;
}

/* Usual widths and decays in place of the label at one index, and for one more if n_more is 1. */
static enum phema_status try_usual(struct search *search, struct phema_profile *widths, size_t n,
                                   size_t from, size_t n_more, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = from; !status && i < n; i++) {
        struct phema_profile given = widths[i];
        for (size_t u = 0; !status && set_usual(&widths[i], u); u++)
            status = n_more ? try_usual(search, widths, n, i + 1, n_more - 1, err)
                            : try_widths(search, widths, n, err);
        widths[i] = given;
    }
    return status;
}

static enum phema_status try_orders(struct search *search, struct phema_profile *widths, size_t n,
                                    size_t from, struct phema_error *err)
{
    if (from + 1 >= n)
        return try_widths(search, widths, n, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = from; !status && i < n; i++) {
        struct phema_profile kept = widths[from];
        widths[from] = widths[i];
        widths[i] = kept;
        status = try_orders(search, widths, n, from + 1, err);
        widths[i] = widths[from];
        widths[from] = kept;
    }
    return status;
}

/* All averages updated every so many steps. */
static enum phema_status try_update(struct search *search, uint64_t every, struct phema_error *err)
{
    search_reset(search, search_newest_begin(search), search->n_groups);
    uint64_t given = 0; /* another one than this */
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k];
        uint64_t own = profile->update_every ? profile->update_every : 1;
        if (profile->shape != PHEMA_SHAPE_POWER)
            return PHEMA_OK;
        given = own != every ? own : given;
        profile->update_every = every;
    }
    bool is_better = false;
    enum phema_status status = given ? search_try(&is_better, search, err) : PHEMA_OK;
    if (status || !is_better)
        return status;
    struct phema_strbuf *text = search_explain(search, SIZE_MAX);
    phema_strbuf_printf(text, "the snapshots fit update_every %llu", (unsigned long long)every);
    if (every == 1)
        phema_strbuf_printf(text, ", not %llu", (unsigned long long)given);
    phema_strbuf_printf(text, "; if that is so, give %s%llu",
                        phema_setting_equals(PHEMA_SET_UPDATE_EVERY), (unsigned long long)every);
    search_set_remedy(search, PHEMA_SET_UPDATE_EVERY, "%llu", (unsigned long long)every);
    return PHEMA_OK;
}

static enum phema_status try_updates(struct search *search, struct phema_error *err)
{
    const struct phema_series *series = search->series;
    double end = series->snapshots[series->n - 1].time;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(usual_updates) && end <= MOST_STEPS && !status; i++)
        status = try_update(search, usual_updates[i], err);
    return status;
}

/* The snapshots before a time, and those from it on, fit alone. */
static enum phema_status try_break(struct search *search, size_t g, struct phema_error *err)
{
    size_t first = search_near_begin(g), end = search_near_end(search, g);
    const struct phema_snapshot *snapshots = search->series->snapshots;
    if (g == 0 || search->group[g] - search->group[first] < 3 ||
        search->group[end] - search->group[g] < 3)
        return PHEMA_OK;
    double best = search->best;
    bool fits_before, fits_after = false;
    search_reset(search, first, g);
    enum phema_status status = search_try(&fits_before, search, err);
    double before = search->best;
    search->best = best;
    if (!status && fits_before) {
        search_reset(search, g, end);
        status = search_try(&fits_after, search, err);
    }
    search->best = fits_after ? fmax(before, search->best) : best;
    if (!status && fits_after)
        phema_strbuf_printf(search_explain(search, SIZE_MAX),
                            "something changed between times %.10g and %.10g: another training, or "
                            "an average that was reset",
                            snapshots[search->group[g] - 1].named_time,
                            snapshots[search->group[g]].named_time);
    return status;
}

/* ---- Search ---- */

/* The snapshots whose absence helps most, then those with the largest z. */
static void find_candidates(size_t candidates[N_CANDIDATES], const struct fit *fit, size_t n)
{
    for (size_t c = 0; c < N_CANDIDATES; c++) {
        size_t best = SIZE_MAX;
        for (size_t k = 0; k < n; k++) {
            bool is_taken = isnan(fit->largest_without[k]);
            for (size_t d = 0; d < c; d++)
                is_taken |= candidates[d] == k;
            if (!is_taken &&
                (best == SIZE_MAX || fit->largest_without[k] < fit->largest_without[best]))
                best = k;
        }
        candidates[c] = best;
    }
}

static enum phema_status search_near(struct search *search, size_t k, struct phema_error *err)
{
    size_t g = search_group_of(search, k);
    double max_z, ignored;
    search_reset(search, search_near_begin(g), search_near_end(search, g));
    enum phema_status status = search_rate(&max_z, &ignored, search, err);
    if (status || isfinite(max_z)) /* what is wrong lies elsewhere */
        return status;
    status = try_exchanges_within(search, g, err);
    if (!status && g > 0)
        status = try_exchanges_of_times(search, g - 1, err);
    if (!status)
        status = try_exchanges_of_times(search, g, err);
    return status ? status : try_without(search, k, err);
}

/* Whether most neighbours are apart by clearly more than their rounding, which may repeat: then the
 * others predict a snapshot better than its labels say. */
static bool is_moving(const struct search *search)
{
    const struct phema_sample *sample = search->sample;
    size_t n_moved = 0;
    for (size_t k = 1; k < sample->n; k++) {
        double a = fmax(sample->rounding[k - 1], PHEMA_FLOAT32_FLOOR),
               b = fmax(sample->rounding[k], PHEMA_FLOAT32_FLOOR);
        n_moved += phema_sample_distance(sample, k - 1, k) > 100 * (a * a + b * b);
    }
    return 2 * n_moved > sample->n;
}

/* Whether the times are so far from each other that a training does not keep its direction. */
static bool are_times_apart(const struct search *search)
{
    const struct phema_series *series = search->series;
    double all = series->snapshots[series->n - 1].time - series->snapshots[0].time;
    return strcmp(series->unit, "steps") != 0 ||
           all >= LEAST_APART * (double)(search->n_groups - 1);
}

/* Usual widths for the newest snapshots, which are more alike than their labels say: averages taken
 * for raw, or for shorter ones. A training that hardly changes its direction would look the
 * same. */
enum phema_status search_longer(struct search *search, struct phema_error *err)
{
    size_t n = common_group(search);
    struct phema_profile *widths = calloc(n + 1, sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    bool is_known = n > 0 && is_moving(search) && are_times_apart(search);
    for (size_t i = 0; i < n; i++) {
        widths[i] = search->series->snapshots[i].profile;
        is_known =
            is_known && (widths[i].shape == PHEMA_SHAPE_POWER ||
                         widths[i].shape == PHEMA_SHAPE_EMA || widths[i].shape == PHEMA_SHAPE_RAW);
    }
    search->likelihood = -HUGE_VAL;
    enum phema_status status = is_known ? try_usual(search, widths, n, 0, 0, err) : PHEMA_OK;
    search->likelihood = PHEMA_UNKNOWN;
    free(widths);
    return status;
}

static enum phema_status search_all(struct search *search, struct phema_error *err)
{
    size_t n = common_group(search);
    search_reset(search, search_newest_begin(search), search->n_groups);
    double max_z, ignored;
    enum phema_status status = search_rate(&max_z, &ignored, search, err);
    if (status || isfinite(max_z)) /* what is wrong lies before them */
        return status;
    if (n && search->group[1] == n) {
        struct phema_profile *widths = calloc(n, sizeof(*widths));
        if (!widths)
            return phema_fail_memory(err);
        bool is_plain = true;
        for (size_t i = 0; i < n; i++) {
            widths[i] = search->series->snapshots[i].profile;
            is_plain = is_plain && widths[i].shape == PHEMA_SHAPE_POWER;
        }
        if (n > 1 && n <= 4)
            status = try_orders(search, widths, n, 0, err);
        for (size_t n_more = 0; !status && is_plain && n_more < 2 && !search->text.size; n_more++)
            status = try_usual(search, widths, n, 0, n_more, err);
        free(widths);
    }
    return status ? status : try_updates(search, err);
}

enum phema_status search_labels(struct search *search, const struct fit *fit,
                                struct phema_error *err)
{
    size_t candidates[N_CANDIDATES];
    find_candidates(candidates, fit, search->series->n);
    enum phema_status status = search_assumption(search, err);
    if (status || search->text.size)
        return status;
    for (size_t c = 0; !status && c < N_CANDIDATES; c++)
        if (candidates[c] != SIZE_MAX)
            status = search_near(search, candidates[c], err);
    bool is_shifted = false;
    if (!status && !search->text.size)
        status = search_shifts(&is_shifted, search, err);
    bool is_open = !status && !search->text.size;
    if (is_open)
        status = try_update(search, 1, err); /* a wrong option is likelier than an event */
    bool is_updated = is_open && search->text.size;
    if (!status && !is_shifted && !is_updated)
        status = search_resets(search, fit, err);
    if (!status)
        status = search_all(search, err);
    for (size_t c = 0; !status && c < N_CANDIDATES && !search->text.size; c++) {
        if (candidates[c] == SIZE_MAX)
            continue;
        size_t g = search_group_of(search, candidates[c]);
        status = try_break(search, g, err);
        if (!status && g + 1 < search->n_groups)
            status = try_break(search, g + 1, err);
    }
    return status;
}
