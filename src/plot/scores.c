// SPDX-License-Identifier: Apache-2.0
/* scores.c - reads a CSV of scores by width. */
#include "scores.h"

#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/number.h"
#include "phema/plot.h"
#include "phema/strbuf.h"

#define LARGEST_SCORE 1e100 /* differences of scores must be finite */

struct reading {
    struct scores *scores;
    size_t sigma_column, score_column;
    bool has_columns;
    size_t capacity;
};

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Removes the first field from a line; without the quotes and blanks around it. */
static struct phema_span cut_field(struct phema_span *line)
{
    struct phema_span field = {line->data, 0};
    bool is_quoted = line->size > 0 && line->data[0] == '"';
    size_t i = is_quoted;
    while (i < line->size && line->data[i] != (is_quoted ? '"' : ','))
        i++;
    field.data += is_quoted;
    field.size = i - is_quoted;
    while (i < line->size && line->data[i] != ',')
        i++;
    i += i < line->size;
    line->data += i;
    line->size -= i;
    while (field.size && is_blank(field.data[0])) {
        field.data++;
        field.size--;
    }
    while (field.size && is_blank(field.data[field.size - 1]))
        field.size--;
    return field;
}

static struct phema_span field_at(struct phema_span line, size_t column)
{
    struct phema_span field = {0};
    for (size_t i = 0; i <= column; i++) {
        if (i > 0 && line.size == 0)
            return (struct phema_span){0};
        field = cut_field(&line);
    }
    return field;
}

static bool is_text(struct phema_span field, const char *text)
{
    return field.size == strlen(text) && memcmp(field.data, text, field.size) == 0;
}

static enum phema_status read_names(struct reading *reading, struct phema_span line, bool *is_names,
                                    struct phema_error *err)
{
    double number = 0;
    reading->has_columns = true;
    reading->score_column = 1;
    *is_names = false;
    if (phema_decimal_parse(&number, field_at(line, 0)))
        return PHEMA_OK;
    size_t n_found = 0;
    for (size_t column = 0; line.size; column++) {
        struct phema_span field = cut_field(&line);
        if (is_text(field, "sigma_rel"))
            reading->sigma_column = column;
        else if (is_text(field, "score"))
            reading->score_column = column;
        else
            continue;
        n_found++;
    }
    if (n_found != 2)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected the columns sigma_rel and score, each once, or two numbers");
    *is_names = true;
    return PHEMA_OK;
}

static enum phema_status add(struct reading *reading, struct score score, struct phema_error *err)
{
    struct scores *scores = reading->scores;
    if (scores->n == PHEMA_PLOT_MAX_SCORES)
        return phema_fail(err, PHEMA_ERR_FILE, "has more than %d scores", PHEMA_PLOT_MAX_SCORES);
    if (!phema_array_grow(&scores->items, &reading->capacity, scores->n, sizeof(*scores->items)))
        return phema_fail_memory(err);
    scores->items[scores->n++] = score;
    return PHEMA_OK;
}

static enum phema_status read_line(struct reading *reading, struct phema_span line,
                                   struct phema_error *err)
{
    struct score score = {0};
    struct phema_name_buffer shown;
    struct phema_span width = field_at(line, reading->sigma_column);
    struct phema_span value = field_at(line, reading->score_column);
    if (!phema_decimal_parse(&score.sigma_rel, width) ||
        !(score.sigma_rel > 0 && score.sigma_rel < PHEMA_SIGMA_REL_SUPREMUM))
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' is no sigma_rel between 0 and %g",
                          phema_name_escape(&shown, (const char *)width.data, width.size),
                          PHEMA_SIGMA_REL_SUPREMUM);
    if (value.size == 0)
        score.score = PHEMA_UNKNOWN;
    else if (!phema_decimal_parse(&score.score, value))
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' is no score; expected a number",
                          phema_name_escape(&shown, (const char *)value.data, value.size));
    if (isfinite(score.score) && fabs(score.score) > LARGEST_SCORE)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a score of at most %g, found %g",
                          LARGEST_SCORE, score.score);
    if (isfinite(score.score))
        return add(reading, score, err);
    reading->scores->n_left_out++;
    return PHEMA_OK;
}

/* Compares scores as well, so that the result does not depend on how qsort orders equal items. */
static int by_width(const void *a, const void *b)
{
    const struct score *first = a, *second = b;
    int order = (first->sigma_rel > second->sigma_rel) - (first->sigma_rel < second->sigma_rel);
    return order ? order : (first->score > second->score) - (first->score < second->score);
}

static enum phema_status read_lines(struct reading *reading, struct phema_span csv,
                                    struct phema_error *err)
{
    for (size_t number = 1; csv.size; number++) {
        const uint8_t *end = memchr(csv.data, '\n', csv.size);
        size_t size = end ? (size_t)(end - csv.data) : csv.size;
        struct phema_span line = {csv.data, size};
        while (line.size && line.data[line.size - 1] == '\r')
            line.size--;
        size += end != NULL;
        csv.data += size;
        csv.size -= size;
        if (line.size == 0 || line.data[0] == '#')
            continue;
        bool is_names = false;
        enum phema_status status = PHEMA_OK;
        if (!reading->has_columns)
            status = read_names(reading, line, &is_names, err);
        if (!status && !is_names)
            status = read_line(reading, line, err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE scores_read(struct scores *out, struct phema_span csv, struct phema_error *err)
{
    *out = (struct scores){0};
    struct reading reading = {.scores = out};
    enum phema_status status = read_lines(&reading, csv, err);
    if (!status && out->n == 0)
        status = phema_fail(err, PHEMA_ERR_FILE, "expected lines of sigma_rel,score, found %s",
                            out->n_left_out ? "none with a finite score" : "none");
    if (status) {
        scores_clear(out);
        return status;
    }
    qsort(out->items, out->n, sizeof(*out->items), by_width);
    return PHEMA_OK;
}

void scores_clear(struct scores *scores)
{
    free(scores->items);
    *scores = (struct scores){0};
}
