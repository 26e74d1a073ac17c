// SPDX-License-Identifier: Apache-2.0
/* memory.c - memory of a run by stage, from the lines that --profile-memory writes. */
#include "figure.h"
#include "phema/json.h"
#include "phema/setting.h"

#define MEMORY_BOX 320

/* Kinds of memory, by their keys in the lines; a kind that no stage has is not drawn. */
static const struct {
    const char *key, *legend;
    uint32_t color;
} levels[] = {
    {"rss_anon", "anonymous memory (RSS), peak", COLOR_BLUE},
    {"rss_file", "mapped files (RSS), peak", COLOR_SKY},
    {"allocated", "allocated (ledger), peak", COLOR_ORANGE},
    {"device", "device memory, peak", COLOR_GREEN},
};
#define N_LEVELS ARRAY_LEN(levels)

struct level {
    double peak, now; /* [bytes]; NaN: the line does not have this kind */
};

struct stage {
    const char *name;
    double elapsed_s;
    struct level levels[N_LEVELS];
};

struct reading {
    struct phema_picture *picture;
    struct stage *stages; /* [PHEMA_PLOT_MAX_STAGES] */
    size_t n;
};

static enum phema_status read_level(struct level *out, const struct phema_json *line,
                                    const char *key, struct phema_error *err)
{
    const struct phema_json *level = phema_json_get(line, key);
    uint64_t peak = 0, now = 0;
    *out = (struct level){PHEMA_UNKNOWN, PHEMA_UNKNOWN};
    if (!level)
        return PHEMA_OK;
    if (!phema_json_u64(&peak, phema_json_get(level, "peak")))
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' has no peak in bytes", key);
    if (!phema_json_u64(&now, phema_json_get(level, "now")))
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' does not say how much it is now", key);
    *out = (struct level){(double)peak, (double)now};
    return PHEMA_OK;
}

static enum phema_status read_stage(struct reading *reading, const struct phema_json *line,
                                    struct phema_error *err)
{
    size_t size = 0;
    const char *name = phema_json_string(phema_json_get(line, "stage"), &size);
    if (!name)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a line of synth %s with a 'stage'",
                          phema_setting_name(PHEMA_SET_PROFILE_MEMORY));
    if (reading->n == PHEMA_PLOT_MAX_STAGES)
        return phema_fail(err, PHEMA_ERR_FILE, "has more than %d stages", PHEMA_PLOT_MAX_STAGES);
    struct stage *stage = &reading->stages[reading->n];
    struct phema_name_buffer shown;
    stage->name = picture_text(reading->picture, "%s", phema_name_escape(&shown, name, size));
    if (!phema_json_number(&stage->elapsed_s, phema_json_get(line, "elapsed_seconds")))
        return phema_fail(err, PHEMA_ERR_FILE, "has no elapsed_seconds");
    for (size_t i = 0; i < N_LEVELS; i++) {
        enum phema_status status = read_level(&stage->levels[i], line, levels[i].key, err);
        if (status)
            return status;
    }
    reading->n++;
    return PHEMA_OK;
}

static enum phema_status read_lines(struct reading *reading, struct phema_span text,
                                    struct phema_error *err)
{
    for (size_t number = 1; text.size; number++) {
        struct phema_span line = phema_span_split(&text, '\n');
        struct phema_json *json = NULL;
        if (!line.size)
            continue;
        enum phema_status status = phema_json_parse(&json, line, err);
        if (!status)
            status = read_stage(reading, json, err);
        phema_json_free(json);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    if (reading->n == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a line of JSON for each stage, found none");
    return PHEMA_OK;
}

static bool is_level_known(const struct reading *reading, size_t level)
{
    for (size_t i = 0; i < reading->n; i++)
        if (!isnan(reading->stages[i].levels[level].peak))
            return true;
    return false;
}

/* The unit in which the largest number is below 4096. */
static double choose_unit(const char **name, const struct reading *reading, uint64_t cap_bytes)
{
    static const char *const names[] = {"memory [KiB]", "memory [MiB]", "memory [GiB]",
                                        "memory [TiB]"};
    double most = (double)cap_bytes;
    for (size_t i = 0; i < reading->n; i++)
        for (size_t level = 0; level < N_LEVELS; level++)
            most = fmax(most, reading->stages[i].levels[level].peak);
    double unit = 1024;
    size_t k = 0;
    for (; most / unit >= 4096 && k + 1 < ARRAY_LEN(names); k++)
        unit *= 1024;
    *name = names[k];
    return unit;
}

/* column: of the n_columns bars of a stage */
static void add_level(const struct reading *reading, struct panel *panel, size_t level,
                      size_t column, size_t n_columns, bool of_ends, double unit)
{
    struct phema_picture *picture = reading->picture;
    const struct series shown = {
        .kind = of_ends ? SERIES_ENDS : SERIES_BARS,
        .name = picture_text(picture, "%s %s", levels[level].key, of_ends ? "now" : "peak"),
        .legend = of_ends ? "at the end of the stage" : levels[level].legend,
        .pen = {.color = of_ends ? COLOR_BLACK : levels[level].color, .width = 2, .opacity = 1},
        .has_values = !of_ends,
        .column = column,
        .n_columns = n_columns,
        .n = reading->n};
    struct series *series = panel_series(picture, panel, &shown);
    for (size_t i = 0; series && i < reading->n; i++) {
        const struct level *found = &reading->stages[i].levels[level];
        series->points[i] = (struct point){(double)i, (of_ends ? found->now : found->peak) / unit};
    }
}

static void add_levels(const struct reading *reading, struct panel *panel, bool of_ends,
                       double unit)
{
    size_t n_columns = 0, column = 0;
    for (size_t level = 0; level < N_LEVELS; level++)
        n_columns += is_level_known(reading, level);
    for (size_t level = 0; level < N_LEVELS; level++)
        if (is_level_known(reading, level))
            add_level(reading, panel, level, column++, n_columns, of_ends, unit);
}

static const char *name_time(struct phema_picture *picture, double elapsed_s)
{
    if (elapsed_s < 1e-3)
        return picture_text(picture, "%.3g us", elapsed_s * 1e6);
    if (elapsed_s < 1)
        return picture_text(picture, "%.3g ms", elapsed_s * 1e3);
    return picture_text(picture, elapsed_s < 1000 ? "%.3g s" : "%.0f s", elapsed_s);
}

static void add_stages(const struct reading *reading, struct axis *axis)
{
    struct phema_arena *arena = &reading->picture->arena;
    axis->categories = phema_arena_array(arena, reading->n, sizeof(*axis->categories));
    axis->notes = phema_arena_array(arena, reading->n, sizeof(*axis->notes));
    if (arena->is_failed)
        return;
    for (size_t i = 0; i < reading->n; i++) {
        axis->categories[i] = reading->stages[i].name;
        axis->notes[i] = name_time(reading->picture, reading->stages[i].elapsed_s);
    }
    axis->n_categories = reading->n;
    axis->max = (double)reading->n;
    axis->label = "stage of the run, and how long it took";
}

static void draw(const struct reading *reading, uint64_t cap_bytes)
{
    struct panel shown = {.name = "memory", .height = MEMORY_BOX};
    double unit = choose_unit(&shown.y.label, reading, cap_bytes);
    add_stages(reading, &shown.x);
    struct panel *panel = picture_panel(reading->picture, &shown);
    add_levels(reading, panel, false, unit);
    add_levels(reading, panel, true, unit);
    struct phema_name_buffer size;
    struct mark cap = {
        .at = (double)cap_bytes / unit,
        .pen = {.color = COLOR_RED, .width = 1.6, .opacity = 1, .dash = 6, .gap = 4}};
    if (cap_bytes) {
        cap.label = picture_text(reading->picture, "limit %s", phema_size_format(&size, cap_bytes));
        panel_mark(reading->picture, panel, &cap);
    }
    panel_fit_y(panel);
}

PHEMA_FALLIBLE phema_plot_memory(struct phema_picture **out, const char *title,
                                 struct phema_span lines, uint64_t cap_bytes,
                                 struct phema_error *err)
{
    struct reading reading = {.picture = picture_new(title)};
    if (!reading.picture)
        return phema_fail_memory(err);
    reading.stages =
        phema_arena_array(&reading.picture->arena, PHEMA_PLOT_MAX_STAGES, sizeof(*reading.stages));
    enum phema_status status =
        reading.stages ? read_lines(&reading, lines, err) : phema_fail_memory(err);
    if (!status)
        draw(&reading, cap_bytes);
    return picture_finish(out, reading.picture, status, err);
}
