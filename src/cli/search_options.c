// SPDX-License-Identifier: Apache-2.0
/* search_options.c - what a search is asked for: the range of widths, numbers, OUT, the command. */
#include "verb_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/path.h"
#include "phema/sort.h"
#include "remedy/remedy.h"

#define SEARCH_JOURNAL "scores.csv"

#define DEFAULT_OUT       "search"
#define DEFAULT_TOLERANCE PHEMA_SEARCH_TOLERANCE
#define DEFAULT_BATCH     4

/* Widths of the coarse grid: at one time, at each of several. */
#define DEFAULT_COARSE       PHEMA_SEARCH_GRID
#define DEFAULT_COARSE_TIMES 5

/* The newest snapshot, and what refining takes from 0.02:0.25 to the least tolerance where scores
 * are smooth. */
#define DEFAULT_REFINING 17

/* ---- The range ---- */

/* What is searched for, and how its range is given. */
static const struct place {
    const char *option, *name, *example;
    size_t n_coarse;
    double tolerance;
} places[] = {{"sigma-rel", "width", "0.02:0.25", DEFAULT_COARSE, DEFAULT_TOLERANCE},
              {"lambda", "lambda", "-1:2", 7, 10 * DEFAULT_TOLERANCE}};

static const struct place *place_of(const struct search_setup *setup)
{
    return &places[setup->values->line != NULL];
}

static size_t count_coarse(const struct search_setup *setup, double first, double last)
{
    const struct search_values *values = setup->values;
    bool has_times = values->run.plan.options.n_ats > 1;
    size_t n = has_times ? DEFAULT_COARSE_TIMES : place_of(setup)->n_coarse;
    if (values->coarse)
        return (size_t)values->coarse;
    return phema_search_grid_size(n, first, last, setup->searching.search.tolerance,
                                  values->line != NULL);
}

/* The words of the user instead of the SPEC that was made of them. */
static enum phema_status fail_line(const char *line, enum phema_status status,
                                   struct phema_error *err)
{
    struct phema_error said = *err;
    const char *reason = strstr(said.message, "': ");
    bool is_whole = reason && !strstr(reason, "LAMBDA");
    (void)cli_fail_option(err, status, "line", "'%s': %s", line,
                          is_whole ? reason + 3 : "expected two profiles A,B");
    return cli_suggest(err, status, "line", "sma:8,sma:4");
}

/* That there is such an average. */
static enum phema_status check_place(const struct search_setup *setup, double at,
                                     struct phema_error *err)
{
    struct phema_arena arena = {0};
    struct phema_spec *spec = NULL;
    struct phema_name_buffer lambda;
    double gamma = 0;
    if (!setup->values->line)
        return phema_gamma_from_sigma_rel(&gamma, at, err)
                   ? cli_fail_in_option(err, PHEMA_ERR_TARGET, "sigma-rel")
                   : PHEMA_OK;
    if (!(fabs(at) <= 1e6))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "lambda",
                               "expected numbers from -1e6 to 1e6, found %g", at);
    const char *text = phema_arena_printf(&arena, "line:%s,%s", setup->values->line,
                                          phema_number_format(&lambda, at));
    enum phema_status status =
        text ? phema_spec_parse(&spec, &arena, text, err) : phema_fail_memory(err);
    phema_arena_clear(&arena);
    return status ? fail_line(setup->values->line, status, err) : PHEMA_OK;
}

/* "0.02:0.25": equal ratios */
static enum phema_status use_range(struct search_setup *setup, double first, double last,
                                   struct phema_error *err)
{
    const struct place *place = place_of(setup);
    if (!(last - first >= PHEMA_SEARCH_RESOLUTION)) {
        (void)cli_fail_option(err, PHEMA_ERR_USAGE, place->option,
                              "expected a range from a lower to a higher %s%s, found %g to %g",
                              place->name, last > first ? ", further apart" : "", first, last);
        return cli_suggest(err, PHEMA_ERR_USAGE, place->option, place->example);
    }
    enum phema_status status = check_place(setup, first, err);
    status = status ? status : check_place(setup, last, err);
    if (status)
        return status;
    size_t n = count_coarse(setup, first, last);
    if (n < 2 || n > PHEMA_SEARCH_MOST_GRID ||
        phema_search_grid_gap(n, first, last, setup->values->line != NULL) <
            PHEMA_SEARCH_RESOLUTION)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "coarse",
                               "expected from 2 to %d %ss, at least %g apart, found %zu "
                               "from %g to %g",
                               PHEMA_SEARCH_MOST_GRID, place->name, PHEMA_SEARCH_RESOLUTION, n,
                               first, last);
    double *widths = phema_arena_array(&setup->searching.arena, n, sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    phema_search_grid(widths, n, first, last, setup->values->line != NULL);
    setup->searching.search.widths = widths;
    setup->searching.search.n_widths = n;
    return PHEMA_OK;
}

static enum phema_status use_list(struct search_setup *setup, const struct cli_reals *list,
                                  struct phema_error *err)
{
    if (setup->values->coarse) {
        (void)cli_fail_option(err, PHEMA_ERR_USAGE, "coarse",
                              "goes with a range such as %s; the list is the grid",
                              place_of(setup)->example);
        return cli_suggest(err, PHEMA_ERR_USAGE, "coarse", "");
    }
    qsort(list->items, list->n, sizeof(*list->items), phema_compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 || list->items[i] > list->items[kept - 1])
            list->items[kept++] = list->items[i];
    if (kept < 2)
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, place_of(setup)->option,
                                           "expected a range such as %s, or several %ss",
                                           place_of(setup)->example, place_of(setup)->name),
                           place_of(setup)->option, place_of(setup)->example);
    setup->searching.search.widths = list->items;
    setup->searching.search.n_widths = kept;
    return PHEMA_OK;
}

static enum phema_status read_range(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    const char *line_range = values->lambda ? values->lambda : places[1].example;
    const char *text = values->line ? line_range : values->sigma_rel;
    if (values->line ? values->sigma_rel != NULL : values->lambda != NULL)
        return cli_fail_option(err, PHEMA_ERR_USAGE, values->line ? "line" : "lambda",
                               values->line ? "excludes --sigma-rel" : "goes with --line");
    if (!text) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "search: --sigma-rel is missing; give a range such as 0.02:0.25");
        return cli_suggest(err, PHEMA_ERR_USAGE, "sigma-rel", "0.02:0.25");
    }
    struct cli_reals list = {0};
    double range[2];
    enum phema_status status =
        cli_parse_range(range, &list, &setup->searching.arena, place_of(setup)->option, text, err);
    if (status)
        return status;
    status = list.n ? use_list(setup, &list, err) : use_range(setup, range[0], range[1], err);
    for (size_t i = 0; !status && i < list.n; i++)
        status = check_place(setup, list.items[i], err);
    setup->searching.search.is_line = values->line != NULL;
    return status;
}

/* ---- Directory of the candidates ---- */

static enum phema_status fail_out(const char *out, const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_USAGE, "%s: %s", out, what);
}

static enum phema_status check_template(const char *name, const char *out, bool has_times,
                                        struct phema_error *err)
{
    if (memchr(out, '{', (size_t)(name - out)))
        return fail_out(out, "only the last part of OUT may hold {sigma} and {time}", err);
    if (!strstr(name, "{sigma}") && !strstr(name, "{profile}"))
        return fail_out(out, "expected {sigma} in the names of candidates", err);
    if (has_times && !strstr(name, "{time}"))
        return fail_out(out, "expected {time} in the names of candidates, which are of several",
                        err);
    return PHEMA_OK;
}

/* A copy of the first text, of this size, with the second after it. */
static const char *join_texts(struct phema_arena *arena, const char *first, size_t size,
                              const char *second)
{
    size_t size_second = strlen(second) + 1;
    char *joined = phema_arena_alloc(arena, size + size_second);
    if (joined) {
        memcpy(joined, first, size);
        memcpy(joined + size, second, size_second);
    }
    return joined;
}

/* OUT is a directory, or names whose directory also holds the scores. */
static enum phema_status read_out(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    const char *out = values->run.outputs.out ? values->run.outputs.out : DEFAULT_OUT;
    const char *slash = strrchr(out, '/'), *directory = out;
    size_t size;
    if (strchr(out, '{')) {
        enum phema_status status =
            check_template(slash ? slash + 1 : out, out, values->run.plan.options.n_ats > 1, err);
        if (status)
            return status;
        directory = slash ? out : ".";
        size = slash && slash > out ? (size_t)(slash - out) : 1;
        setup->options.out = out;
    } else {
        if (phema_format_from_path(NULL, out, PHEMA_NAMES_SNAPSHOT) &&
            !phema_path_is_directory(out))
            return cli_suggest(err,
                               fail_out(out,
                                        "expected a directory for the candidates, or names such "
                                        "as search/{time}-{sigma}.pt",
                                        err),
                               "OUT", "search/");
        size = phema_path_trimmed_size(out);
        setup->options.out = join_texts(&setup->searching.arena, out, size, "/");
    }
    setup->options.directory = join_texts(&setup->searching.arena, directory, size, "");
    setup->options.scores_path =
        join_texts(&setup->searching.arena, directory, size, "/" SEARCH_JOURNAL);
    return setup->options.out && setup->options.directory && setup->options.scores_path
               ? PHEMA_OK
               : phema_fail_memory(err);
}

/* ---- The rest ---- */

/* is_run: that it can be run, too */
static enum phema_status check_command(struct search_setup *setup, bool is_run,
                                       struct phema_error *err)
{
    const struct search_values *values = setup->values;
    char **words = NULL;
    if (!values->exec) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "search: --exec is missing; give the command that scores an average, "
                         "such as './evaluate.sh {}'");
        return cli_suggest_command(err, PHEMA_ERR_USAGE, "posthoc-ema search", "-h");
    }
    enum phema_status status = values->is_shell
                                   ? phema_command_shell(&words, values->exec, "{}", err)
                                   : phema_command_split(&words, values->exec, "{}", err);
    if (!status && is_run && !strstr(words[0], "{}"))
        status = phema_command_check(words, err);
    free(words);
    return status ? cli_fail_in_option(err, status, "exec") : PHEMA_OK;
}

static enum phema_status read_numbers(struct search_setup *setup, struct phema_error *err)
{
    const struct search_values *values = setup->values;
    if (values->minimizes && values->maximizes)
        return phema_fail(err, PHEMA_ERR_USAGE, "--minimize and --maximize: give one of them");
    setup->searching.search.maximizes = values->maximizes;
    setup->searching.search.tolerance =
        isnan(values->tolerance) ? place_of(setup)->tolerance : values->tolerance;
    if (!(setup->searching.search.tolerance >= PHEMA_SEARCH_MIN_TOLERANCE) ||
        !(setup->searching.search.tolerance < 1))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "tolerance", "expected %g or more, found %g",
                               PHEMA_SEARCH_MIN_TOLERANCE, values->tolerance);
    if (!isnan(values->noise) && (!(values->noise > 0) || !isfinite(values->noise)))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "noise",
                               "expected the standard deviation of one score, above 0, found %g",
                               values->noise);
    setup->searching.search.noise = isnan(values->noise) ? 0 : values->noise;
    if (!isnan(values->timeout) && !(values->timeout > 0))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "timeout",
                               "expected more than 0 seconds, found %g", values->timeout);
    setup->options.batch = values->batch ? values->batch : DEFAULT_BATCH;
    if (setup->options.batch > PHEMA_SEARCH_MOST_BATCH)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "batch", "expected at most %d, found %llu",
                               PHEMA_SEARCH_MOST_BATCH, (unsigned long long)values->batch);
    enum phema_status status = read_range(setup, err);
    if (status)
        return status;
    size_t n_times = values->run.plan.options.n_ats ? values->run.plan.options.n_ats : 1;
    uint64_t n_coarse = (uint64_t)setup->searching.search.n_widths * n_times;
    setup->options.most = values->evaluations ? values->evaluations : n_coarse + DEFAULT_REFINING;
    if (setup->options.most < n_coarse)
        return cli_fail_option(
            err, PHEMA_ERR_USAGE, "evaluations",
            "%llu are fewer than the %llu of the coarse grid (%zu "
            "%s%s at %zu time%s)",
            (unsigned long long)setup->options.most, (unsigned long long)n_coarse,
            setup->searching.search.n_widths, place_of(setup)->name,
            setup->searching.search.n_widths == 1 ? "" : "s", n_times, n_times == 1 ? "" : "s");
    return PHEMA_OK;
}

PHEMA_FALLIBLE search_read_options(struct search_setup *setup, struct phema_error *err)
{
    enum phema_status status = check_command(setup, false, err);
    if (!status)
        status = read_numbers(setup, err);
    if (!status)
        status = read_out(setup, err);
    return status ? status : check_command(setup, true, err);
}
