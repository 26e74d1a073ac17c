// SPDX-License-Identifier: Apache-2.0
/* series_hypotheses.c - the labels that are tried for a series that does not fit its own. */
#include "series_search.h"

#include <math.h>
#include <string.h>

#include "phema/setting.h"

#define N_CANDIDATES ((size_t)3) /* snapshots tried */

/* Steps between two times, in the mean. Momentum keeps the direction of a training for 10 to 20
 * steps, and a loss that falls quickly for up to a hundred. Snapshots nearer to each other are
 * alike whatever they are. */
#define LEAST_APART 150

/* Likelihood an element that a longer average gains over a training that keeps its direction, unless it is
 * that of a walk. */
#define LONGER 1.0

/* Steps that profiles with an update_every are followed in a hypothesis, at most: all of them
 * then take some four seconds. */
#define MOST_STEPS 2e6

/* Defaults and usual choices of EDM2, ema-pytorch and others. */
static const double usual_widths[] = {0.03, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.28};
static const double usual_decays[] = {0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999};
static const uint64_t usual_updates[] = {1, 2, 5, 10, 20, 50, 100};

/* ---- One snapshot ---- */

/* The neighbour whose numbers are the same; k: none. */
static size_t find_copy(const struct search *search, size_t k)
{
    for (size_t other = 0; other < search->series->n; other++)
        if (other != k && phema_sample_distance(search->sample, k, other) == 0)
            return other;
    return k;
}

static void try_without(struct search *search, size_t k)
{
    struct labels *tried = &search->tried;
    size_t first = search_reset_near(search, search_group_of(search, k));
    tried->n--;
    for (size_t i = k - first; i < tried->n; i++) {
        tried->profiles[i] = tried->profiles[i + 1];
        tried->rows[i] = tried->rows[i + 1];
    }
    if (!search_try(search))
        return;
    const char *label = search->snapshots[k].label;
    size_t copy = find_copy(search, k);
    struct phema_strbuf *text = search_explain(search, k);
    search->is_sure = copy != k;
    if (copy != k)
        phema_strbuf_printf(text, "'%s' is a copy of '%s'", label, search->snapshots[copy].label);
    else
        phema_strbuf_printf(
            text, "'%s' does not fit the others: it is damaged, or of another training", label);
}

/* n snapshots of group g, from a on, and as many from b on. */
static bool try_exchange(struct search *search, size_t g, size_t a, size_t b, size_t n)
{
    size_t first = search_reset_near(search, g), *rows = search->tried.rows;
    for (size_t i = 0; i < n; i++) {
        rows[a - first + i] = b + i;
        rows[b - first + i] = a + i;
    }
    return search_try(search);
}

static void try_exchange_of_two(struct search *search, size_t g, size_t a, size_t b)
{
    if (try_exchange(search, g, a, b, 1))
        phema_strbuf_printf(search_explain(search, a), "'%s' and '%s' are exchanged",
                            search->snapshots[a].label, search->snapshots[b].label);
}

/* All snapshots of a time and of the next one; or one of them alone. */
static void try_exchange_of_times(struct search *search, size_t g)
{
    if (g + 1 >= search->n_groups)
        return;
    size_t a = search->group[g], b = search->group[g + 1], n = b - a;
    if (search->group[g + 2] - b != n)
        return;
    if (try_exchange(search, g, a, b, n))
        phema_strbuf_printf(search_explain(search, a),
                            "the snapshots of times %.10g and %.10g are exchanged",
                            search->snapshots[a].named_time, search->snapshots[b].named_time);
    for (size_t i = 0; n > 1 && i < n && !search->text.size; i++)
        try_exchange_of_two(search, g, a + i, b + i);
}

static void search_near(struct search *search, size_t k)
{
    size_t g = search_group_of(search, k);
    struct fit fit;
    (void)search_reset_near(search, g);
    if (search_rate(&fit, search)) /* what is wrong lies elsewhere */
        return;
    for (size_t a = search->group[g]; a < search->group[g + 1]; a++)
        for (size_t b = a + 1; b < search->group[g + 1]; b++)
            try_exchange_of_two(search, g, a, b);
    if (g > 0)
        try_exchange_of_times(search, g - 1);
    try_exchange_of_times(search, g);
    try_without(search, k);
}

/* ---- All snapshots ---- */

static bool has_same_width(const struct phema_profile *a, const struct phema_profile *b)
{
    return a->shape == b->shape && (a->shape != PHEMA_SHAPE_POWER || a->gamma == b->gamma) &&
           (a->shape != PHEMA_SHAPE_EMA || a->half_life == b->half_life);
}

/* The profiles of the first time, if all times have the same ones but for their ends; else NULL.
 *   n  out: their number */
static struct phema_profile *find_widths(struct search *search, size_t *n)
{
    *n = search->group[1];
    const struct phema_profile *first = search->given.profiles;
    for (size_t g = 0; g < search->n_groups; g++) {
        if (search->group[g + 1] - search->group[g] != *n)
            return NULL;
        for (size_t i = 0; i < *n; i++) {
            const struct phema_profile *other = &first[search->group[g] + i];
            if (!has_same_width(&first[i], other) || first[i].update_every != other->update_every)
                return NULL;
        }
    }
    struct phema_profile *widths = phema_arena_array(&search->memory, *n, sizeof(*widths));
    if (widths)
        memcpy(widths, first, *n * sizeof(*widths));
    else
        search->status = phema_fail_memory(search->err);
    return widths;
}

static void print_widths(struct phema_strbuf *text, const struct phema_profile *widths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        phema_strbuf_puts(text, i ? "," : "");
        if (widths[i].shape == PHEMA_SHAPE_RAW)
            phema_strbuf_puts(text, "raw");
        else if (widths[i].shape == PHEMA_SHAPE_EMA)
            phema_strbuf_printf(text, "ema:decay=%.6g", exp2(-1 / widths[i].half_life));
        else
            phema_strbuf_printf(text, "%.4g", phema_sigma_rel_from_gamma(widths[i].gamma));
    }
}

static void explain_widths(struct search *search, size_t n)
{
    const struct phema_profile *fitting = search->tried.profiles, *given = search->given.profiles;
    const char *kind = "sigma_rel ";
    for (size_t i = 0; i < n; i++)
        kind = fitting[i].shape == PHEMA_SHAPE_POWER ? kind : "";
    struct phema_strbuf *text = search_explain(search, SIZE_MAX);
    if (isnan(search->likelihood)) {
        phema_strbuf_printf(text, "the snapshots fit %s", kind);
        print_widths(text, fitting, n);
        phema_strbuf_puts(text, ", not ");
        print_widths(text, given, n);
    } else {
        phema_strbuf_puts(text, "neighbouring snapshots are more alike than the label ");
        print_widths(text, given, n);
        phema_strbuf_printf(text, " says: they fit %s", kind);
        print_widths(text, fitting, n);
        phema_strbuf_puts(text, ", or the training kept its direction");
    }
}

static void try_widths(struct search *search, const struct phema_profile *widths, size_t n)
{
    bool is_given = true;
    for (size_t i = 0; i < n; i++)
        is_given = is_given && has_same_width(&widths[i], &search->given.profiles[i]);
    if (is_given)
        return;
    search_reset_newest(search, SEARCH_NEWEST);
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k], given = *profile;
        *profile = widths[k % n];
        bool is_raw = profile->shape == PHEMA_SHAPE_RAW;
        profile->t = given.t;
        profile->reset = is_raw ? 0 : given.reset;
        profile->origin = is_raw ? 0 : given.origin;
    }
    if (search_try(search))
        explain_widths(search, n);
}

/* Sets a profile to the next usual one, which keeps its end; false: there are no more.
 *   step  of the series */
static bool set_usual(struct phema_profile *profile, size_t index, double step)
{
    struct phema_profile usual = {.t = profile->t, .update_every = profile->update_every};
    struct phema_error ignored;
    size_t n_widths = ARRAY_LEN(usual_widths), n_decays = ARRAY_LEN(usual_decays);
    if (index > n_widths + n_decays)
        return false;
    if (index == n_widths + n_decays) {
        usual.shape = PHEMA_SHAPE_RAW;
        usual.length = step;
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
static void try_usual(struct search *search, struct phema_profile *widths, size_t n, size_t from,
                      size_t n_more)
{
    for (size_t i = from; i < n; i++) {
        struct phema_profile given = widths[i];
        for (size_t u = 0; !search->status && set_usual(&widths[i], u, search->series->step); u++) {
            if (n_more)
                try_usual(search, widths, n, i + 1, n_more - 1);
            else
                try_widths(search, widths, n);
        }
        widths[i] = given;
    }
}

static void exchange(struct phema_profile *a, struct phema_profile *b)
{
    struct phema_profile kept = *a;
    *a = *b;
    *b = kept;
}

static void try_orders(struct search *search, struct phema_profile *widths, size_t n, size_t from)
{
    if (from + 1 >= n)
        try_widths(search, widths, n);
    for (size_t i = from; from + 1 < n && i < n; i++) {
        exchange(&widths[from], &widths[i]);
        try_orders(search, widths, n, from + 1);
        exchange(&widths[from], &widths[i]);
    }
}

/* All averages updated every so many steps. */
static void try_update(struct search *search, uint64_t every)
{
    uint64_t given = 0; /* another one than this */
    search_reset_newest(search, SEARCH_NEWEST);
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k];
        uint64_t own = profile->update_every ? profile->update_every : 1;
        if (profile->shape != PHEMA_SHAPE_POWER)
            return;
        given = own != every ? own : given;
        profile->update_every = every;
    }
    if (!given || !search_try(search))
        return;
    struct phema_name_buffer value;
    struct phema_strbuf *text = search_explain(search, SIZE_MAX);
    if (every == 1 && search->series->may_drop_update) {
        phema_strbuf_printf(text, "the snapshots fit without %s%llu",
                            phema_setting_equals(PHEMA_SET_UPDATE_EVERY),
                            (unsigned long long)given);
        search_set_remedy(search, PHEMA_SET_UPDATE_EVERY, "");
        return;
    }
    phema_strbuf_printf(text, "the snapshots fit update_every %s",
                        phema_number_format(&value, (double)every));
    if (every == 1)
        phema_strbuf_printf(text, ", not %llu", (unsigned long long)given);
    search_suggest(search, PHEMA_SET_UPDATE_EVERY, value.text);
}

void search_updates(struct search *search)
{
    double end = search->snapshots[search->series->n - 1].time;
    for (size_t i = 0; i < ARRAY_LEN(usual_updates) && end <= MOST_STEPS; i++)
        try_update(search, usual_updates[i]);
}

/* The snapshots before a time, and those from it on, fit alone. */
static void try_break(struct search *search, size_t g)
{
    size_t first = search_near_begin(g), end = search_near_end(search, g);
    const size_t *group = search->group;
    if (g == 0 || group[g] - group[first] < 3 || group[end] - group[g] < 3)
        return;
    double best = search->best;
    (void)search_reset(search, first, g);
    if (!search_try(search))
        return;
    double before = search->best;
    search->best = best;
    (void)search_reset(search, g, end);
    if (!search_try(search))
        return;
    search->best = fmax(before, search->best);
    phema_strbuf_printf(search_explain(search, SIZE_MAX),
                        "something changed between times %.10g and %.10g: another training, or "
                        "an average that was reset",
                        search->snapshots[group[g] - 1].named_time,
                        search->snapshots[group[g]].named_time);
    search->is_sure = true; /* both parts fit alone */
}

static void search_all(struct search *search)
{
    struct fit fit;
    search_reset_newest(search, SEARCH_NEWEST);
    if (search_rate(&fit, search)) /* what is wrong lies before them */
        return;
    size_t n;
    struct phema_profile *widths = find_widths(search, &n);
    bool is_plain = widths;
    for (size_t i = 0; widths && i < n; i++)
        is_plain = is_plain && widths[i].shape == PHEMA_SHAPE_POWER;
    if (widths && n > 1 && n <= 4)
        try_orders(search, widths, n, 0);
    for (size_t n_more = 0; is_plain && n_more < 2 && !search->text.size; n_more++)
        try_usual(search, widths, n, 0, n_more);
    search_updates(search);
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
 * for raw, or for shorter ones. They must be likelier than a training that keeps its direction. */
void search_longer(struct search *search)
{
    if (!is_moving(search) || !are_times_apart(search))
        return;
    size_t n;
    struct phema_profile *widths = find_widths(search, &n);
    for (size_t i = 0; widths && i < n; i++)
        if (widths[i].shape != PHEMA_SHAPE_POWER && widths[i].shape != PHEMA_SHAPE_EMA &&
            widths[i].shape != PHEMA_SHAPE_RAW)
            return;
    search_reset_newest(search, SEARCH_NEWEST);
    struct fit drifting = search_fit(search, &search->tried, COMPARE_DRIFTING);
    search->likelihood = fit_explains(&drifting) ? drifting.likelihood : -HUGE_VAL;
    if (widths)
        try_usual(search, widths, n, 0, 0);
    search->likelihood = PHEMA_UNKNOWN;
    struct fit fit = search_fit(search, &search->found, COMPARE_SNAPSHOTS);
    if (search->text.size && fit_explains(&drifting) && !fit_is_walk(&fit) &&
        !(fit.likelihood > drifting.likelihood + LONGER))
        phema_strbuf_clear(&search->text);
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

void search_labels(struct search *search, const struct fit *fit)
{
    size_t candidates[N_CANDIDATES];
    find_candidates(candidates, fit, search->series->n);
    search_assumption(search);
    if (search->text.size)
        return;
    for (size_t c = 0; c < N_CANDIDATES; c++)
        if (candidates[c] != SIZE_MAX)
            search_near(search, candidates[c]);
    bool is_shifted = !search->text.size && search_shifts(search);
    bool is_open = !search->text.size;
    if (is_open)
        try_update(search, 1); /* a wrong option is likelier than an event */
    if (!is_shifted && !(is_open && search->text.size))
        search_resets(search, fit);
    search_all(search);
    for (size_t c = 0; c < N_CANDIDATES && !search->text.size; c++) {
        if (candidates[c] == SIZE_MAX)
            continue;
        size_t g = search_group_of(search, candidates[c]);
        try_break(search, g);
        if (g + 1 < search->n_groups)
            try_break(search, g + 1);
    }
}
