// SPDX-License-Identifier: Apache-2.0
/* journal_parse.c - parses the lines of a journal. */
#include <string.h>

#include "journal.h"
#include "phema/array.h"
#include "phema/json.h"
#include "phema/number.h"

/* ---- Lists in memory ---- */

PHEMA_FALLIBLE journal_add_score(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err)
{
    for (size_t i = 0; i < journal->n; i++)
        if (journal->scores[i].at.sigma_rel == score->at.sigma_rel &&
            journal->scores[i].at.time == score->at.time) {
            journal->scores[i] = *score;
            return PHEMA_OK;
        }
    if (!phema_array_grow(&journal->scores, &journal->capacity, journal->n,
                          sizeof(*journal->scores)))
        return phema_fail_memory(err);
    journal->scores[journal->n++] = *score;
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_add_made(struct phema_journal *journal, struct phema_search_point at,
                                const char *name, size_t size, struct phema_error *err)
{
    if (!phema_array_grow(&journal->made, &journal->made_capacity, journal->n_made,
                          sizeof(*journal->made)))
        return phema_fail_memory(err);
    char *copy = strndup(name, size);
    if (!copy)
        return phema_fail_memory(err);
    journal->made[journal->n_made++] = (struct phema_search_made){at, copy};
    return PHEMA_OK;
}

/* ---- Reading ---- */

static struct phema_span split_field(struct phema_span *line)
{
    const uint8_t *comma = line->size ? memchr(line->data, ',', line->size) : NULL;
    struct phema_span field = {line->data, comma ? (size_t)(comma - line->data) : line->size};
    size_t skipped = field.size + (comma != NULL);
    line->data += skipped;
    line->size -= skipped;
    return field;
}

/* The columns after the score may be missing. */
static bool read_score(struct phema_search_score *out, struct phema_span line)
{
    *out = (struct phema_search_score){.predicted_error = PHEMA_UNKNOWN};
    if (!phema_decimal_parse(&out->at.sigma_rel, split_field(&line)) ||
        !phema_decimal_parse(&out->at.time, split_field(&line)) ||
        !phema_decimal_parse(&out->score, split_field(&line)))
        return false;
    struct phema_span seconds = split_field(&line), error = split_field(&line);
    return (!seconds.size || phema_decimal_parse(&out->seconds, seconds)) &&
           (!error.size || phema_decimal_parse(&out->predicted_error, error)) && !line.size &&
           isfinite(out->at.sigma_rel) && isfinite(out->at.time);
}

static bool is_name(const char *name, size_t size)
{
    return name && size && !memchr(name, '/', size) && !memchr(name, '\0', size) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* [sigma_rel, time, "name"] */
static enum phema_status read_made(struct phema_journal *journal, struct phema_span text,
                                   struct phema_error *err)
{
    struct phema_json *parsed = NULL;
    enum phema_status status = phema_json_parse(&parsed, text, err);
    if (status)
        return status;
    size_t size = 0;
    struct phema_search_point at = {0, 0};
    const char *name = phema_json_string(phema_json_at(parsed, 2), &size);
    if (phema_json_length(parsed) != 3 || !is_name(name, size) ||
        !phema_json_number(&at.sigma_rel, phema_json_at(parsed, 0)) ||
        !phema_json_number(&at.time, phema_json_at(parsed, 1)))
        status = phema_fail(err, PHEMA_ERR_FILE, "expected [sigma_rel, time, \"name of a file\"]");
    else
        status = journal_add_made(journal, at, name, size, err);
    phema_json_free(parsed);
    return status;
}

static bool begins_with(struct phema_span line, const char *start)
{
    return line.size >= strlen(start) && memcmp(line.data, start, strlen(start)) == 0;
}

static enum phema_status read_line(struct phema_journal *journal, struct phema_span line,
                                   struct phema_error *err)
{
    if (line.size && line.data[line.size - 1] == '\r')
        line.size--;
    if (begins_with(line, JOURNAL_MADE)) {
        size_t skipped = strlen(JOURNAL_MADE);
        return read_made(journal, (struct phema_span){line.data + skipped, line.size - skipped},
                         err);
    }
    if (line.size == 0 || line.data[0] == '#')
        return PHEMA_OK;
    struct phema_search_score score;
    struct phema_name_buffer shown;
    if (!read_score(&score, line))
        return phema_fail(err, PHEMA_ERR_FILE, "expected " JOURNAL_COLUMNS ", found '%s'",
                          phema_name_escape(&shown, (const char *)line.data, line.size));
    return journal_add_score(journal, &score, err);
}

struct phema_span journal_split_line(struct phema_span *text)
{
    const uint8_t *end = memchr(text->data, '\n', text->size);
    struct phema_span line = {text->data, end ? (size_t)(end - text->data) : text->size};
    size_t skipped = line.size + (end != NULL);
    text->data += skipped;
    text->size -= skipped;
    return line;
}

PHEMA_FALLIBLE journal_check_header(struct phema_span *text, struct phema_span header,
                                    struct phema_error *err)
{
    static const char *const differs[] = {
        NULL,
        "its scores are those of another --exec or --score-regex",
        "its scores are of averages that were made with other options",
        "its scores are of other snapshots",
        NULL,
    };
    for (size_t i = 0; i < ARRAY_LEN(differs); i++) {
        struct phema_span wanted = journal_split_line(&header);
        struct phema_span found = text->size ? journal_split_line(text) : (struct phema_span){0};
        if (found.data && found.size == wanted.size &&
            memcmp(found.data, wanted.data, wanted.size) == 0)
            continue;
        if (!differs[i]) /* a file of another program, or a damaged journal */
            return phema_fail(err, i ? PHEMA_ERR_FILE : PHEMA_ERR_OUTPUT,
                              "line %zu: expected '%.*s'; it is none that a search has written",
                              i + 1, (int)wanted.size, (const char *)wanted.data);
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s; give another OUT, or --force to begin anew",
                          differs[i]);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_read_lines(struct phema_journal *journal, struct phema_span text,
                                  size_t first, struct phema_error *err)
{
    for (size_t number = first; text.size; number++) {
        enum phema_status status = read_line(journal, journal_split_line(&text), err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_read_made(struct phema_journal *journal, struct phema_span text,
                                 struct phema_error *err)
{
    while (text.size) {
        struct phema_span line = journal_split_line(&text);
        struct phema_error unused;
        if (begins_with(line, JOURNAL_MADE) &&
            read_line(journal, line, &unused) == PHEMA_ERR_RESOURCE)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

bool journal_has_no_scores(struct phema_span text)
{
    while (text.size) {
        struct phema_span line = journal_split_line(&text);
        if (line.size && line.data[0] != '#' && !begins_with(line, JOURNAL_COLUMNS))
            return false;
    }
    return true;
}
