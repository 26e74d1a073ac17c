// SPDX-License-Identifier: Apache-2.0
/* design_json.c - designs as JSON. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "phema/report.h"

static void name_dtype(char *name, size_t size, enum phema_dtype dtype)
{
    const char *upper = phema_dtype_name(dtype);
    size_t i = 0;
    for (; upper[i] && i + 1 < size; i++)
        name[i] = (char)tolower((unsigned char)upper[i]);
    name[i] = '\0';
}

static void write_dtype(struct phema_json_out *out, const char *key, enum phema_dtype dtype)
{
    char name[16];
    name_dtype(name, sizeof(name), dtype);
    phema_json_out_string(out, key, name);
}

static void write_widths(struct phema_json_out *out, const struct phema_design *design)
{
    bool has_raw = false;
    phema_json_out_open(out, "widths", '[');
    for (size_t k = 0; k < design->n_widths; k++) {
        has_raw = has_raw || design->widths[k].profile.shape == PHEMA_SHAPE_RAW;
        if (design->widths[k].profile.shape != PHEMA_SHAPE_RAW)
            phema_json_out_short(out, NULL, design->widths[k].sigma_rel);
    }
    phema_json_out_close(out, ']');
    phema_json_out_bool(out, "raw", has_raw);
    phema_json_out_open(out, "times", '[');
    for (size_t i = 0; i < design->n_times; i++)
        phema_json_out_u64(out, NULL, (uint64_t)design->times[i]);
    phema_json_out_close(out, ']');
    write_dtype(out, "dtype", design->widths[0].dtype);
    phema_json_out_open(out, "averages", '[');
    for (size_t k = 0; k < design->n_widths; k++) {
        const struct phema_design_width *width = &design->widths[k];
        if (width->profile.shape == PHEMA_SHAPE_RAW)
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_short(out, "sigma_rel", width->sigma_rel);
        if (width->profile.shape == PHEMA_SHAPE_EMA)
            phema_json_out_number(out, "half_life", width->profile.half_life);
        else
            phema_json_out_number(out, "gamma", width->profile.gamma);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

static void write_members(struct phema_json_out *out, const struct design_asked *asked,
                          const struct phema_design *design)
{
    phema_json_out_u64(out, "disk_bytes", design->disk_bytes);
    write_widths(out, design);
    phema_json_out_number(out, "worst_error", design->worst_error);
    phema_json_out_open(out, "worst_target", '{');
    double sigma_rel = asked->sigma_rels[design->worst_target];
    phema_json_out_short(out, "sigma_rel", sigma_rel);
    if (asked->specs[design->worst_target])
        phema_json_out_string(out, "profile", asked->specs[design->worst_target]);
    phema_json_out_u64(out, "time", (uint64_t)design->worst_end);
    phema_json_out_close(out, '}');
}

static void write_head(struct phema_json_out *out, const struct design_asked *asked)
{
    phema_json_out_u64(out, "until", (uint64_t)asked->question.until);
    phema_json_out_string(out, "unit", asked->unit);
    phema_json_out_string(out, "motion",
                          asked->question.motion.moving == PHEMA_MOVING_SEEN
                              ? "seen"
                              : design_motion_names[asked->question.motion.moving]);
    phema_json_out_u64(out, "model_elements", asked->question.model_elems);
    if (!isnan(asked->wishes->raw_every))
        phema_json_out_u64(out, "raw_every", (uint64_t)asked->wishes->raw_every);
}

/* Bytes of a snapshot in each dtype that may be chosen. */
static void write_sizes(struct phema_json_out *out, const struct phema_design_question *question)
{
    phema_json_out_open(out, "snapshot_bytes", '{');
    for (size_t d = question->n_dtypes; d-- > 0;) {
        char name[16];
        name_dtype(name, sizeof(name), question->dtypes[d]);
        phema_json_out_u64(out, name,
                           phema_dtype_bytes(question->dtypes[d], question->model_elems));
    }
    phema_json_out_close(out, '}');
}

static void write_others(struct phema_json_out *out, const struct design_answer *answer)
{
    phema_json_out_open(out, "others", '[');
    for (size_t i = 0; i < answer->n_others; i++) {
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "name", answer->others[i].name);
        write_members(out, answer->asked, &answer->others[i].design);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

/* Files of --keep-existing. */
static void write_kept(struct phema_json_out *out, const struct design_asked *asked)
{
    const struct phema_series *series = asked->run->series;
    static const char *const keys[] = {"keep", "delete"};
    for (size_t is_deleted = 0; is_deleted < 2; is_deleted++) {
        phema_json_out_open(out, keys[is_deleted], '[');
        for (size_t k = 0; k < series->n; k++)
            if (asked->is_deleted[k] == (is_deleted == 1))
                phema_json_out_string(out, NULL, series->snapshots[k].label);
        phema_json_out_close(out, ']');
    }
}

static void write_motions(struct phema_json_out *out, const struct design_answer *answer)
{
    phema_json_out_open(out, "motions", '[');
    for (size_t m = 0; m < PHEMA_N_MOVING; m++) {
        if (isnan(answer->in_motion[m]))
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_string(out, "motion", design_motion_names[m]);
        phema_json_out_number(out, "worst_error", answer->in_motion[m]);
        phema_json_out_number(out, "least_worst_error", answer->best_in_motion[m].worst_error);
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

void design_write_json(struct phema_strbuf *out, const struct render_style *style,
                       const struct design_answer *answer)
{
    struct phema_json_out json;
    struct phema_strbuf lines = {0};
    render_json_begin(&json, out, true);
    write_head(&json, answer->asked);
    write_sizes(&json, &answer->asked->question);
    phema_json_out_open(&json, "choices", '[');
    for (size_t i = 0; i < answer->choices.n; i++) {
        phema_json_out_open(&json, NULL, '{');
        write_members(&json, answer->asked, &answer->choices.items[i]);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_json_out_u64(&json, "chosen", answer->choices.chosen);
    if (answer->asked->is_deleted)
        write_kept(&json, answer->asked);
    write_others(&json, answer);
    write_motions(&json, answer);
    design_write_lines(&lines, answer, &answer->choices.items[answer->choices.chosen]);
    phema_json_out_string(&json, "lines", lines.data ? lines.data : "");
    phema_strbuf_clear(&lines);
    if (answer->asked->run)
        report_checks_json(&json, style, answer->asked->run);
    render_json_end(&json);
}

void design_write_file(struct phema_strbuf *out, const struct design_answer *answer)
{
    struct phema_json_out json;
    render_json_begin(&json, out, true);
    write_head(&json, answer->asked);
    write_members(&json, answer->asked, &answer->choices.items[answer->choices.chosen]);
    render_json_end(&json);
}
