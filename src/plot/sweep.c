// SPDX-License-Identifier: Apache-2.0
/* sweep.c - scores of averages by width, read from a CSV, with the best one marked. */
#include <stdlib.h>

#include "figure.h"
#include "phema/array.h"
#include "phema/number.h"

#define SWEEP_BOX 320

/* ---- Reading ---- */

/* Each of them has a curve; more are not told apart. */
#define MOST_TIMES 8

struct scored {
    double time;     /* 0: one curve for all */
    struct point at; /* sigma_rel and score */
};

struct scores {
    struct scored *items; /* [n] by time, then by width, then by score */
    size_t n, capacity;
    size_t n_times;
    double newest;     /* score of the newest snapshot as it is; NaN: none */
    size_t n_left_out; /* lines without a finite score */
    size_t sigma_column, score_column, time_column;
    bool has_columns, has_times;
};

static struct phema_span field_at(struct phema_span line, size_t column)
{
    for (size_t i = 0; i < column; i++)
        (void)phema_span_cut_cell(&line);
    return phema_span_cut_cell(&line);
}

/* The first line names the columns; where it has numbers instead, the first two columns are
 * read. */
static enum phema_status read_names(struct scores *scores, struct phema_span line, bool *is_names,
                                    struct phema_error *err)
{
    double number = 0;
    scores->has_columns = true;
    scores->score_column = 1;
    *is_names = !phema_decimal_parse(&number, field_at(line, 0));
    size_t n_found = 0;
    for (size_t column = 0; *is_names && line.size; column++) {
        struct phema_span field = phema_span_cut_cell(&line);
        if (phema_bytes_are(field.data, field.size, "sigma_rel"))
            scores->sigma_column = column;
        else if (phema_bytes_are(field.data, field.size, "score"))
            scores->score_column = column;
        else {
            bool is_time = phema_bytes_are(field.data, field.size, "time");
            scores->time_column = is_time ? column : scores->time_column;
            scores->has_times = scores->has_times || is_time;
            continue;
        }
        n_found++;
    }
    if (*is_names && n_found != 2)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected the columns sigma_rel and score, each once, or two numbers");
    return PHEMA_OK;
}

static enum phema_status read_line(struct scores *scores, struct phema_span line,
                                   struct phema_error *err)
{
    struct point score = {0};
    double time = 0;
    struct phema_name_buffer shown;
    struct phema_span width = field_at(line, scores->sigma_column);
    struct phema_span value = field_at(line, scores->score_column);
    bool is_newest = phema_bytes_are(width.data, width.size, PHEMA_NEWEST_WIDTH);
    if (!is_newest && (!phema_decimal_parse(&score.x, width) ||
                       !(score.x > 0 && score.x < PHEMA_SIGMA_REL_SUPREMUM)))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a sigma_rel between 0 and %g, found '%s'",
                          PHEMA_SIGMA_REL_SUPREMUM,
                          phema_name_escape(&shown, (const char *)width.data, width.size));
    if (value.size == 0)
        score.y = PHEMA_UNKNOWN;
    else if (!phema_decimal_parse(&score.y, value))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a score, a number, found '%s'",
                          phema_name_escape(&shown, (const char *)value.data, value.size));
    if (isfinite(score.y) && fabs(score.y) > PHEMA_LARGEST_SCORE)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a score of at most %g, found %g",
                          PHEMA_LARGEST_SCORE, score.y);
    if (!isfinite(score.y)) {
        scores->n_left_out++;
        return PHEMA_OK;
    }
    if (is_newest) {
        scores->newest = score.y;
        return PHEMA_OK;
    }
    if (scores->n == PHEMA_PLOT_MAX_SCORES)
        return phema_fail(err, PHEMA_ERR_FILE, "has more than %d scores", PHEMA_PLOT_MAX_SCORES);
    if (!phema_array_grow(&scores->items, &scores->capacity, scores->n, sizeof(*scores->items)))
        return phema_fail_memory(err);
    if (scores->has_times &&
        (!phema_decimal_parse(&time, field_at(line, scores->time_column)) || !isfinite(time)))
        time = 0;
    scores->items[scores->n++] = (struct scored){time, score};
    return PHEMA_OK;
}

/* Compares scores as well, so that the result does not depend on how qsort orders equal items. */
static int by_time_and_width(const void *a, const void *b)
{
    const struct scored *first = a, *second = b;
    double differences[] = {first->time - second->time, first->at.x - second->at.x,
                            first->at.y - second->at.y};
    for (size_t i = 0; i < ARRAY_LEN(differences); i++)
        if (differences[i] != 0)
            return differences[i] > 0 ? 1 : -1;
    return 0;
}

static void sort(struct scores *scores)
{
    scores->n_times = 1;
    qsort(scores->items, scores->n, sizeof(*scores->items), by_time_and_width);
    for (size_t i = 1; i < scores->n; i++)
        scores->n_times += scores->items[i].time != scores->items[i - 1].time;
    if (scores->n_times <= MOST_TIMES)
        return;
    for (size_t i = 0; i < scores->n; i++)
        scores->items[i].time = 0;
    scores->n_times = 1;
    qsort(scores->items, scores->n, sizeof(*scores->items), by_time_and_width);
}

/* Empty lines and lines that begin with # are skipped. */
static enum phema_status read_lines(struct scores *scores, struct phema_span csv,
                                    struct phema_error *err)
{
    for (size_t number = 1; csv.size; number++) {
        struct phema_span line = phema_span_split(&csv, '\n');
        while (line.size && line.data[line.size - 1] == '\r')
            line.size--;
        if (line.size == 0 || line.data[0] == '#')
            continue;
        bool is_names = false;
        enum phema_status status = PHEMA_OK;
        if (!scores->has_columns)
            status = read_names(scores, line, &is_names, err);
        if (!status && !is_names)
            status = read_line(scores, line, err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return PHEMA_OK;
}

/* ---- The picture ---- */

/* The first one of equal best scores. */
static size_t find_best(const struct scores *scores, bool maximizes)
{
    size_t best = 0;
    for (size_t i = 1; i < scores->n; i++) {
        double here = scores->items[i].at.y;
        double there = scores->items[best].at.y;
        if (maximizes ? here > there : here < there)
            best = i;
    }
    return best;
}

/* Adds a tenth of the spread around the scores; the range need not include 0. */
static void fit_axes(struct panel *panel, const struct scores *scores)
{
    double min = HUGE_VAL, max = -HUGE_VAL, first = HUGE_VAL, last = 0;
    for (size_t i = 0; i < scores->n; i++) {
        min = fmin(min, scores->items[i].at.y);
        max = fmax(max, scores->items[i].at.y);
        first = fmin(first, scores->items[i].at.x);
        last = fmax(last, scores->items[i].at.x);
    }
    min = fmin(min, scores->newest); /* fmin and fmax ignore NaN */
    max = fmax(max, scores->newest);
    double size = fmax(fabs(min), fabs(max));
    double border = max > min ? (max - min) / 10 : size > 1e-280 ? size / 10 : 1;
    border = fmax(border, size * 1e-9); /* ticks must stay distinct as doubles */
    panel->y.min = min - border;
    panel->y.max = max + border;
    double margin = fmax(last > first ? (last - first) / 20 : last / 10, 1e-280);
    panel->x.min = fmax(first - margin, 0);
    panel->x.max = last + margin;
}

/* Whether the newest snapshot has a better score than this. */
static bool is_newest_best(const struct scores *scores, double score, bool maximizes)
{
    return maximizes ? scores->newest > score : scores->newest < score; /* NaN: false */
}

/* One for each time. */
static void draw_curves(struct phema_picture *picture, struct panel *panel,
                        const struct scores *scores)
{
    struct point *points = phema_arena_array(&picture->arena, scores->n, sizeof(*points));
    struct phema_name_buffer time;
    size_t curve = 0;
    for (size_t i = 0, n = 0; points && i < scores->n; i++) {
        points[n++] = scores->items[i].at;
        if (i + 1 < scores->n && scores->items[i + 1].time == scores->items[i].time)
            continue;
        const char *shown = phema_number_format(&time, scores->items[i].time);
        struct choices choices = {.items = points,
                                  .n = n,
                                  .color = palette_color(curve++, scores->n_times),
                                  .name = "scores",
                                  .legend = "averages that were scored"};
        if (scores->n_times > 1) {
            choices.name = picture_text(picture, "scores at %s", shown);
            choices.legend = picture_text(picture, "averages at time %s that were scored", shown);
        }
        panel_choices(picture, panel, &choices);
        n = 0;
    }
}

static void draw(struct phema_picture *picture, const struct scores *scores, size_t at,
                 const struct phema_plot_sweep *sweep)
{
    const struct point *best = &scores->items[at].at;
    struct phema_name_buffer time;
    bool has_times = scores->n_times > 1;
    bool is_newest = is_newest_best(scores, best->y, sweep->maximizes);
    struct panel shown = {.name = "score",
                          .height = SWEEP_BOX,
                          .x = {.label = WIDTH_LABEL},
                          .y = {.label = picture_text(picture, "%s (%s is better)",
                                                      sweep->label ? sweep->label : "score",
                                                      sweep->maximizes ? "higher" : "lower")}};
    fit_axes(&shown, scores);
    struct panel *panel = picture_panel(picture, &shown);
    draw_curves(picture, panel, scores);
    panel_best(picture, panel, *best, "best",
               picture_text(picture, "best%s: sigma_rel %.4g%s%s, score %.6g",
                            is_newest ? " average" : "", best->x, has_times ? " at time " : "",
                            has_times ? phema_number_format(&time, scores->items[at].time) : "",
                            best->y));
    if (isnan(scores->newest))
        return;
    struct point ends[] = {{shown.x.min, scores->newest}, {shown.x.max, scores->newest}};
    const struct series line = {
        .name = PHEMA_NEWEST_WIDTH,
        .legend = picture_text(picture, "%sthe newest snapshot as it is%s score %.6g",
                               is_newest ? "best: " : "", is_newest ? "," : ":", scores->newest),
        .pen = {.color = COLOR_BLACK, .width = 1.2, .opacity = 0.6, .dash = 5, .gap = 4},
        .points = ends,
        .n = ARRAY_LEN(ends)};
    (void)panel_series(picture, panel, &line);
}

PHEMA_FALLIBLE phema_plot_sweep(struct phema_picture **out, struct phema_sweep_facts *facts,
                                const struct phema_plot_sweep *sweep, struct phema_error *err)
{
    struct scores scores = {.newest = PHEMA_UNKNOWN};
    struct phema_picture *picture = NULL;
    enum phema_status status = read_lines(&scores, sweep->csv, err);
    if (!status && scores.n == 0)
        status = phema_fail(err, PHEMA_ERR_FILE, "expected lines of sigma_rel,score, found %s",
                            scores.n_left_out ? "none with a finite score" : "none");
    if (!status) {
        sort(&scores);
        picture = picture_new(sweep->title);
    }
    if (picture) {
        size_t best = find_best(&scores, sweep->maximizes);
        const struct scored *at = &scores.items[best];
        *facts = (struct phema_sweep_facts){scores.n_left_out, at->at.x, at->at.y,
                                            scores.n_times > 1 ? at->time : PHEMA_UNKNOWN};
        if (is_newest_best(&scores, facts->best_score, sweep->maximizes))
            *facts = (struct phema_sweep_facts){scores.n_left_out, PHEMA_UNKNOWN, scores.newest,
                                                PHEMA_UNKNOWN};
        draw(picture, &scores, best, sweep);
    }
    free(scores.items);
    return picture_finish(out, picture, status, err);
}
