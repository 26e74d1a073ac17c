// SPDX-License-Identifier: Apache-2.0
/* journal_lines.c - the lists of a journal in memory, and reading the lines of scores.csv. */
#include "journal_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/json.h"
#include "phema/number.h"
#include "phema/setting.h"

/* ---- Lists in memory ---- */

size_t journal_find_score(const struct phema_journal *journal, struct phema_search_point at)
{
    size_t i = 0;
    while (i < journal->n && !phema_search_point_equals(journal->scores[i].at, at))
        i++;
    return i;
}

PHEMA_FALLIBLE journal_add_score(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err)
{
    size_t i = journal_find_score(journal, score->at);
    if (i < journal->n) {
        journal->scores[i] = *score;
        return PHEMA_OK;
    }
    if (!phema_array_grow(&journal->scores, &journal->capacity, journal->n,
                          sizeof(*journal->scores)))
        return phema_fail_memory(err);
    journal->scores[journal->n++] = *score;
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_keep_made(struct phema_journal *journal, struct phema_search_point at,
                                 const char *name, struct phema_error *err)
{
    if (!phema_array_grow(&journal->made, &journal->made_capacity, journal->n_made,
                          sizeof(*journal->made)))
        return phema_fail_memory(err);
    char *copy = strdup(name);
    if (!copy)
        return phema_fail_memory(err);
    journal->made[journal->n_made++] = (struct phema_search_made){at, copy};
    return PHEMA_OK;
}

/* The name may be that of one of them. */
void journal_drop_made(struct phema_journal *journal, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < journal->n_made; i++) {
        struct phema_search_made made = journal->made[i];
        if (strcmp(made.name, name) == 0)
            continue;
        journal->made[i] = journal->made[n];
        journal->made[n++] = made;
    }
    for (size_t i = n; i < journal->n_made; i++)
        free(journal->made[i].name);
    journal->n_made = n;
}

const char *journal_first_column(bool is_line)
{
    return is_line ? "lambda" : "sigma_rel";
}

/* ---- Reading ---- */

/* A width above 0 or any lambda, or the newest snapshot. */
static bool read_width(double *sigma_rel, struct phema_span field, bool is_line)
{
    *sigma_rel = PHEMA_SEARCH_NEWEST;
    if (phema_bytes_are(field.data, field.size, PHEMA_NEWEST_WIDTH))
        return true;
    return phema_decimal_parse(sigma_rel, field) && isfinite(*sigma_rel) &&
           (is_line || *sigma_rel > 0);
}

/* The columns after the score may be missing. */
static bool read_score(struct phema_search_score *out, struct phema_span line, bool is_line)
{
    *out = (struct phema_search_score){.predicted_error = PHEMA_UNKNOWN};
    if (!read_width(&out->at.sigma_rel, phema_span_split(&line, ','), is_line) ||
        !phema_decimal_parse(&out->at.time, phema_span_split(&line, ',')) ||
        !phema_decimal_parse(&out->score, phema_span_split(&line, ',')))
        return false;
    struct phema_span seconds = phema_span_split(&line, ','), error = phema_span_split(&line, ',');
    return (!seconds.size || phema_decimal_parse(&out->seconds, seconds)) &&
           (!error.size || phema_decimal_parse(&out->predicted_error, error)) && !line.size &&
           isfinite(out->at.time);
}

static bool is_name(const char *name, size_t size)
{
    return name && size && !memchr(name, '/', size) && !memchr(name, '\0', size) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool read_place(double *out, const struct phema_json *value, bool is_line)
{
    if (is_line && phema_json_type(value) == PHEMA_JSON_NULL)
        return true;
    bool is_number = phema_json_number(out, value);
    if (*out == 0 && !is_line)
        *out = PHEMA_SEARCH_NEWEST;
    return is_number;
}

/* [sigma_rel, time, "name"] of a candidate, or ["name"] of one that is removed */
static enum phema_status read_candidate(struct phema_journal *journal, struct phema_span text,
                                        bool is_made, struct phema_error *err)
{
    struct phema_json *parsed = NULL;
    enum phema_status status = phema_json_parse(&parsed, text, err);
    if (status)
        return status;
    size_t size = 0, last = is_made ? 2 : 0;
    struct phema_search_point at = {PHEMA_SEARCH_NEWEST, 0};
    const char *name = phema_json_string(phema_json_at(parsed, last), &size);
    bool is_valid = phema_json_length(parsed) == last + 1 && is_name(name, size);
    if (is_valid && is_made)
        is_valid = read_place(&at.sigma_rel, phema_json_at(parsed, 0), journal->is_line) &&
                   phema_json_number(&at.time, phema_json_at(parsed, 1));
    if (!is_valid)
        status = phema_fail(err, PHEMA_ERR_FILE, "expected [%s\"name of a file\"]",
                            is_made ? "sigma_rel, time, " : "");
    else if (is_made)
        status = journal_keep_made(journal, at, name, err);
    else
        journal_drop_made(journal, name);
    phema_json_free(parsed);
    return status;
}

static enum phema_status read_line(struct phema_journal *journal, struct phema_span line,
                                   struct phema_error *err)
{
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    bool is_made = phema_bytes_begin(line.data, line.size, MADE);
    if (is_made || phema_bytes_begin(line.data, line.size, REMOVED)) {
        size_t skipped = strlen(is_made ? MADE : REMOVED);
        const struct phema_span rest = {line.data + skipped, line.size - skipped};
        return read_candidate(journal, rest, is_made, err);
    }
    if (line.size == 0 || line.data[0] == '#')
        return PHEMA_OK;
    struct phema_search_score score;
    struct phema_name_buffer shown;
    if (!read_score(&score, line, journal->is_line))
        return phema_fail(err, PHEMA_ERR_FILE, "expected %s" COLUMNS ", found '%s'",
                          journal_first_column(journal->is_line),
                          phema_name_escape(&shown, (const char *)line.data, line.size));
    return journal_add_score(journal, &score, err);
}

/* line: of the header */
static enum phema_status fail_difference(size_t line, struct phema_error *err)
{
    char of[PHEMA_NAME_SHOWN];
    if (line == 1)
        (void)snprintf(of, sizeof(of), "those of another %s or %s",
                       phema_setting_name(PHEMA_SET_EXEC),
                       phema_setting_name(PHEMA_SET_SCORE_REGEX));
    else if (line == 2)
        (void)snprintf(of, sizeof(of), "of averages that were made with other options");
    else
        (void)snprintf(of, sizeof(of), "of other snapshots, or of another file of %s or %s",
                       phema_setting_name(PHEMA_SET_INTO), phema_setting_name(PHEMA_SET_SCHEDULE));
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "its scores are %s; give another OUT, or %s to begin anew", of,
                      phema_setting_name(PHEMA_SET_FORCE));
}

PHEMA_FALLIBLE journal_check_header(struct phema_span *text, struct phema_span header,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < HEADER_LINES; i++) {
        struct phema_span wanted = phema_span_split(&header, '\n');
        struct phema_span found = phema_span_split(text, '\n');
        if (found.data && found.size == wanted.size &&
            memcmp(found.data, wanted.data, wanted.size) == 0)
            continue;
        if (i == 0 || i == HEADER_LINES - 1) /* a file of another program, or a damaged journal */
            return phema_fail(err, i ? PHEMA_ERR_FILE : PHEMA_ERR_OUTPUT,
                              "line %zu: expected '%.*s'; no search has written this file", i + 1,
                              (int)wanted.size, (const char *)wanted.data);
        return fail_difference(i, err);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_read_lines(struct phema_journal *journal, struct phema_span text,
                                  struct phema_error *err)
{
    for (size_t number = HEADER_LINES + 1; text.size; number++) {
        enum phema_status status = read_line(journal, phema_span_split(&text, '\n'), err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_read_made_lines(struct phema_journal *journal, struct phema_span text,
                                       struct phema_error *err)
{
    while (text.size) {
        struct phema_span line = phema_span_split(&text, '\n');
        struct phema_error unused;
        bool is_read = phema_bytes_begin(line.data, line.size, MADE) ||
                       phema_bytes_begin(line.data, line.size, REMOVED);
        if (is_read && read_line(journal, line, &unused) == PHEMA_ERR_RESOURCE)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

bool journal_has_no_scores(struct phema_span text)
{
    while (text.size) {
        struct phema_span line = phema_span_split(&text, '\n');
        if (line.size && line.data[0] != '#' &&
            !phema_bytes_begin(line.data, line.size, "sigma_rel" COLUMNS) &&
            !phema_bytes_begin(line.data, line.size, "lambda" COLUMNS))
            return false;
    }
    return true;
}
