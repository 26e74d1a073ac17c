// SPDX-License-Identifier: Apache-2.0
/* spec_parse.c - text to SPEC, and back to canonical text, which parses to the same average to the
 * last bit, and to a part of a file name. A term is KIND[:KEY=VALUE,...] or line:TERM,TERM,NUMBER;
 * a difference is two of them with " - " between: bare minus signs are parts of names and numbers. */
#include "phema/profile.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "phema/claims.h"
#include "phema/number.h"
#include "phema/path.h"
#include "spec.h"

/* ---- SPEC to text ---- */

/* Names of files are at most 255 bytes, with a prefix, a time and endings. */
#define MAX_FILE_PART ((size_t)120)

static void append_value(struct phema_strbuf *text, const struct spec_key *key, double value)
{
    struct phema_name_buffer shown;
    if (key->type == SPEC_CHOICE || key->type == SPEC_WARMUP) {
        struct phema_span word = spec_choice_word(key, value);
        phema_strbuf_append(text, (const char *)word.data, word.size);
    } else if (key->type == SPEC_YES_NO)
        phema_strbuf_puts(text, value != 0 ? "yes" : "no");
    else
        phema_strbuf_puts(text, phema_number_format(&shown, value));
}

/* Default values are left out, except for the ramp, which characterises its kind. */
static bool is_written(const struct phema_spec_term *term, size_t i)
{
    const struct spec_key *key = &term->kind->keys[i];
    return !isnan(term->values[i]) &&
           (term->values[i] != key->otherwise || term->kind->build == BUILD_RAMPED);
}

static const char *kind_name(const struct phema_spec_term *term)
{
    return term->kind->build == BUILD_WINDOW ? "window" : term->kind->name;
}

static void append_term(struct phema_strbuf *text, const struct phema_spec_term *term)
{
    phema_strbuf_puts(text, kind_name(term));
    char separator = ':';
    for (size_t i = 0; i < spec_n_keys(term->kind); i++) {
        const struct spec_key *key = &term->kind->keys[i];
        if (!is_written(term, i))
            continue;
        phema_strbuf_append(text, &separator, 1);
        if (!term->kind->is_bare && key->name[0])
            phema_strbuf_printf(text, "%s=", key->name);
        append_value(text, key, term->values[i]);
        separator = key->type == SPEC_WARMUP ? ':' : ',';
    }
    if (term->path)
        phema_strbuf_printf(text, ":%s", term->path);
}

/* ema2000, ema-decay0.9999, edm-ema500000-ramp0.09, window20000 */
static void append_file_part(struct phema_strbuf *text, const struct phema_spec_term *term)
{
    phema_strbuf_puts(text, kind_name(term));
    for (size_t i = 0; i < spec_n_keys(term->kind); i++) {
        if (!is_written(term, i))
            continue;
        if (i)
            phema_strbuf_printf(text, "-%s", term->kind->keys[i].name);
        append_value(text, &term->kind->keys[i], term->values[i]);
    }
    if (term->path)
        phema_strbuf_printf(text, "-%s", phema_path_last_name(term->path));
}

/* Replaces all but letters, digits and ".-_+": the path of a table may contain anything. */
static void escape_file_part(struct phema_strbuf *text)
{
    if (text->size > MAX_FILE_PART)
        text->data[text->size = MAX_FILE_PART] = '\0';
    for (size_t i = 0; i < text->size; i++)
        if (!isalnum((unsigned char)text->data[i]) && !strchr(".-_+", text->data[i]))
            text->data[i] = '_';
}

/* Appends term i, of a line with the terms that belong to it, and returns the index behind them. Of
 * names that are cut, the number of a line comes first. */
static size_t append_terms(struct phema_strbuf *text, struct phema_strbuf *file_part,
                           const struct phema_spec *spec, size_t i)
{
    const struct phema_spec_term *term = &spec->terms[i++];
    append_file_part(file_part, term);
    if (term->kind->build != BUILD_LINE) {
        append_term(text, term);
        return i;
    }
    phema_strbuf_printf(text, "%s:", term->kind->name);
    phema_strbuf_puts(file_part, "-");
    i = append_terms(text, file_part, spec, i);
    phema_strbuf_puts(text, ",");
    phema_strbuf_puts(file_part, "-to-");
    i = append_terms(text, file_part, spec, i);
    phema_strbuf_puts(text, ",");
    append_value(text, &term->kind->keys[0], term->values[0]);
    return i;
}

static enum phema_status format(struct phema_spec *spec, struct phema_error *err)
{
    struct phema_strbuf shown = {0}, file_part = {0};
    size_t second = append_terms(&shown, &file_part, spec, 0);
    if (second < spec->n_terms) {
        phema_strbuf_puts(&shown, " - ");
        phema_strbuf_puts(&file_part, "-minus-");
        (void)append_terms(&shown, &file_part, spec, second);
    }
    escape_file_part(&file_part);
    if (!shown.is_failed && !file_part.is_failed) {
        spec->canonical = phema_arena_copy(spec->arena, shown.data, shown.size);
        spec->file_part = phema_arena_copy(spec->arena, file_part.data, file_part.size);
    }
    phema_strbuf_clear(&shown);
    phema_strbuf_clear(&file_part);
    return spec->canonical && spec->file_part ? PHEMA_OK : phema_fail_memory(err);
}

void phema_spec_append_power(struct phema_strbuf *text, double sigma_rel, double gamma,
                             uint64_t update_every)
{
    struct phema_name_buffer shown;
    bool is_width = !isnan(sigma_rel);
    phema_strbuf_printf(text, "power:%s=%s", is_width ? "sigma" : "gamma",
                        phema_number_format(&shown, is_width ? sigma_rel : gamma));
    if (update_every > 1)
        phema_strbuf_printf(text, ",update-every=%llu", (unsigned long long)update_every);
}

/* ---- Values ---- */

/* A time, or a quotient: tokens in all by tokens of a step. */
static enum phema_status parse_time(double *out, const char *text, struct phema_error *err)
{
    const char *slash = strchr(text, '/');
    char total[64];
    double divisor = 1;
    size_t size = slash ? (size_t)(slash - text) : 0;
    if (!slash || size >= sizeof(total))
        return phema_number_parse(out, text, err);
    memcpy(total, text, size);
    total[size] = '\0';
    enum phema_status status = phema_number_parse(out, total, err);
    if (!status)
        status = phema_number_parse(&divisor, slash + 1, err);
    if (!status)
        *out = divisor > 0 ? *out / divisor : PHEMA_UNKNOWN;
    return status;
}

static enum phema_status parse_value(double *out, const struct spec_key *key, const char *text,
                                     struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    uint64_t count = 0;
    double value = PHEMA_UNKNOWN;
    switch (key->type) {
    case SPEC_NUMBER:
        status = phema_number_parse(&value, text, err);
        break;
    case SPEC_TIME:
        status = parse_time(&value, text, err);
        break;
    case SPEC_COUNT:
        status = phema_count_parse(&count, text, err);
        value = (double)count;
        break;
    case SPEC_YES_NO:
        if (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
            value = text[0] == 'y';
        break;
    case SPEC_CHOICE:
        value = spec_choice_find(key, text);
        break;
    case SPEC_WARMUP: /* parse_warmup */
        break;
    }
    if (!status && !(value >= key->lowest && value <= key->highest)) {
        struct phema_name_buffer shown;
        status = phema_fail(err, PHEMA_ERR_USAGE, "expected %s, found '%s'", key->expected,
                            phema_name_show(&shown, text));
    }
    if (status)
        return phema_fail_in(err, status, "%s", key->name);
    *out = value;
    return PHEMA_OK;
}

/* FORM or FORM:NUMBER,NUMBER; the numbers are values of the keys after this one. */
static enum phema_status parse_warmup(double *values, const struct spec_key *key, char *text,
                                      struct phema_error *err)
{
    char *rest = text, *form = strsep(&rest, ":");
    values[0] = spec_choice_find(key, form);
    if (isnan(values[0])) {
        struct phema_name_buffer shown;
        return phema_fail(err, PHEMA_ERR_USAGE, "warmup: expected %s, found '%s'", key->expected,
                          phema_name_show(&shown, form));
    }
    for (size_t i = 0; i < SPEC_FORM_NUMBERS; i++) {
        struct spec_key number = spec_warmups[(size_t)values[0]].numbers[i];
        const char *given = number.name ? strsep(&rest, ",") : NULL;
        values[1 + i] = number.name ? number.otherwise : PHEMA_UNKNOWN;
        number.type = SPEC_TIME; /* a quotient, too */
        number.name = form;
        enum phema_status status =
            given ? parse_value(&values[1 + i], &number, given, err) : PHEMA_OK;
        if (!status && !given && number.is_needed)
            status = phema_fail(err, PHEMA_ERR_USAGE, "%s: expected %s:A,B", form, form);
        if (status)
            return phema_fail_in(err, status, "warmup");
    }
    return rest ? phema_fail(err, PHEMA_ERR_USAGE, "warmup: %s has too many numbers", form)
                : PHEMA_OK;
}

/* KEY=VALUE, or the bare value of the first key. */
static enum phema_status parse_item(struct phema_spec_term *term, bool *is_given, char *item,
                                    bool is_first, struct phema_error *err)
{
    const struct spec_kind *kind = term->kind;
    char *equals = strchr(item, '=');
    size_t n = spec_n_keys(kind), i = 0;
    if (n == 0)
        return phema_fail(err, PHEMA_ERR_USAGE, "%s takes no values", kind->name);
    if (!equals && !is_first)
        return phema_fail(err, PHEMA_ERR_USAGE, "expected KEY=VALUE, found '%s'", item);
    if (equals) {
        size_t size = (size_t)(equals - item);
        while (i < n && !phema_bytes_are(item, size, kind->keys[i].name))
            i++;
        if (i == n || size == 0)
            return spec_fail_unknown(kind, item, size, err);
    }
    if (is_given[i])
        return phema_fail(err, PHEMA_ERR_USAGE, "has two %s", kind->keys[i].name);
    is_given[i] = true;
    if (kind->keys[i].type == SPEC_WARMUP)
        return parse_warmup(&term->values[i], &kind->keys[i], equals ? equals + 1 : item, err);
    enum phema_status status =
        parse_value(&term->values[i], &kind->keys[i], equals ? equals + 1 : item, err);
    if (!status && !equals && kind->build == BUILD_EMA && term->values[i] < 1)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected a half-life of 1 or more, found '%s'; a decay is ema:decay=%s, "
                          "a shorter half-life ema:half-life=%s",
                          item, item, item);
    return status;
}

static enum phema_status check_given(const struct phema_spec_term *term, const bool *is_given,
                                     struct phema_error *err)
{
    const struct spec_kind *kind = term->kind;
    for (size_t i = 0; i < spec_n_keys(kind); i++)
        if (kind->keys[i].is_needed && !is_given[i])
            return phema_fail(err, PHEMA_ERR_USAGE, "has no %s; expected %s:%s=VALUE",
                              kind->keys[i].name, kind->name, kind->keys[i].name);
    bool needs_one = kind->build == BUILD_POWER || kind->build == BUILD_EMA;
    bool has_both = kind->has_alternatives && is_given[0] && is_given[1];
    if (has_both || (needs_one && !is_given[0] && !is_given[1]))
        return phema_fail(err, PHEMA_ERR_USAGE, "expected either %s or %s, found %s",
                          kind->keys[0].name, kind->keys[1].name, has_both ? "both" : "neither");
    if (kind->build == BUILD_EMA && term->values[1] == 1 && term->values[2] == 0)
        return phema_fail(err, PHEMA_ERR_USAGE, "decay: expected %s, found '1'",
                          kind->keys[1].expected);
    return PHEMA_OK;
}

/* The comma before the next item: one without '=' continues the numbers of a warm-up. */
static char *find_comma(char *item)
{
    char *comma = strchr(item, ',');
    bool has_numbers = strncmp(item, "warmup=", 7) == 0;
    while (has_numbers && comma && comma[1 + strcspn(comma + 1, ",=")] != '=')
        comma = strchr(comma + 1, ',');
    return comma;
}

static enum phema_status parse_items(struct phema_spec_term *term, char *items,
                                     struct phema_error *err)
{
    bool is_given[SPEC_MAX_KEYS] = {false};
    for (size_t i = 0; i < SPEC_MAX_KEYS; i++)
        term->values[i] = term->kind->keys[i].otherwise;
    for (char *item = items; item;) {
        char *comma = find_comma(item);
        if (comma)
            *comma++ = '\0';
        enum phema_status status = parse_item(term, is_given, item, item == items, err);
        if (status)
            return status;
        item = comma;
    }
    enum phema_status status = check_given(term, is_given, err);
    if (!status)
        spec_set_rule(term);
    return status;
}

/* ---- Terms ---- */

/* Lines within lines, and what one text may cost. */
#define MOST_TERMS ((size_t)32)

static enum phema_status parse_terms(struct phema_spec *spec, double factor, const char *text,
                                     size_t size, struct phema_error *err);

/* The comma of "A,B" between two terms: a KIND behind a comma begins a term, KEY=VALUE does not, and
 * "line:" one of two terms. NULL: there is none, or there are more terms. */
static const char *find_second(const char *text)
{
    const char *second = NULL;
    size_t n_missing = 2;
    for (const char *at = text, *end = at; end; at = end ? end + 1 : at) {
        size_t size = strcspn(at, ":,");
        const struct spec_kind *kind = spec_kind_find(at, size);
        bool is_line = kind && kind->build == BUILD_LINE && at[size] == ':';
        bool begins = kind || at == text || at[-1] == ':';
        end = is_line ? at + size : strchr(at, ',');
        if (begins && !n_missing)
            return NULL;
        if (begins && n_missing == 1 && !second)
            second = at - 1;
        n_missing += is_line;
        n_missing -= begins && !is_line;
    }
    return n_missing ? NULL : second;
}

/* "A,B,lambda", of the last term */
static enum phema_status parse_line(struct phema_spec *spec, char *items, struct phema_error *err)
{
    struct phema_spec_term *line = &spec->terms[spec->n_terms - 1];
    char *last = items ? strrchr(items, ',') : NULL;
    if (last)
        *last = '\0';
    const char *second = last ? find_second(items) : NULL;
    if (!second)
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "expected line:A,B,LAMBDA of two profiles, each KIND:KEY=VALUE,..., and a "
            "number, such as line:sma:4,raw,1.5");
    enum phema_status status = parse_items(line, last + 1, err);
    double factor = line->factor, lambda = line->values[0];
    if (!status)
        status = parse_terms(spec, factor * (1 - lambda), items, (size_t)(second - items), err);
    if (!status)
        status = parse_terms(spec, factor * lambda, second + 1, strlen(second + 1), err);
    return status;
}

/* Adds the term and those that are parts of it. */
static enum phema_status parse_terms(struct phema_spec *spec, double factor, const char *text,
                                     size_t size, struct phema_error *err)
{
    if (spec->n_terms == MOST_TERMS)
        return phema_fail(err, PHEMA_ERR_USAGE, "has more than %zu profiles", MOST_TERMS);
    char *copy = phema_arena_copy(spec->arena, text, size);
    spec->terms = phema_arena_grow(spec->arena, spec->terms, spec->n_terms, sizeof(*spec->terms));
    if (!copy || !spec->terms)
        return phema_fail_memory(err);
    struct phema_spec_term *term = &spec->terms[spec->n_terms++];
    char *colon = strchr(copy, ':');
    size_t name_size = colon ? (size_t)(colon - copy) : size;
    *term = (struct phema_spec_term){.kind = spec_kind_find(copy, name_size), .factor = factor};
    if (!term->kind)
        return spec_fail_unknown(NULL, copy, name_size, err);
    if (term->kind->build == BUILD_LINE)
        return parse_line(spec, colon ? colon + 1 : NULL, err);
    if (!term->kind->takes_path)
        return parse_items(term, colon ? colon + 1 : NULL, err);
    if (!colon || !colon[1])
        return phema_fail(err, PHEMA_ERR_USAGE, "expected %s:FILE", term->kind->name);
    term->path = colon + 1;
    return spec_read_table(term, spec->arena, err);
}

bool phema_spec_is_stepwise(const struct phema_spec *spec)
{
    enum spec_build build = spec->terms[0].kind->build;
    return spec->is_average && build >= BUILD_EMA && build <= BUILD_COSMOS;
}

PHEMA_FALLIBLE phema_spec_claim(const struct phema_spec *spec, struct phema_claims *claims,
                                struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < spec->n_terms && !status; i++)
        if (spec->terms[i].path)
            status =
                phema_claims_add_input(claims, spec->terms[i].path, "the table of a profile", err);
    return status;
}

/* The " - " of a difference, or NULL. In the path of a table it is one only before a term. */
static const char *find_minus(const char *text)
{
    const char *minus = strstr(text, " - "), *table = strstr(text, "table:");
    while (minus && table && table < minus && !spec_kind_find(minus + 3, strcspn(minus + 3, ":")))
        minus = strstr(minus + 3, " - ");
    return minus;
}

/* Checks all power functions; the only one of a spec sets its numbers. */
static enum phema_status resolve_powers(struct phema_spec *spec, struct phema_error *err)
{
    spec->sigma_rel = spec->gamma = PHEMA_UNKNOWN;
    for (size_t i = 0; i < spec->n_terms; i++) {
        double sigma_rel, gamma, every = spec_value(&spec->terms[i], "update-every");
        if (spec->terms[i].kind->build != BUILD_POWER)
            continue;
        enum phema_status status = spec_resolve_power(&sigma_rel, &gamma, &spec->terms[i], err);
        if (status)
            return status;
        if (spec->n_terms > 1)
            continue;
        spec->update_every = isnan(every) ? 0 : (uint64_t)every;
        spec->sigma_rel = sigma_rel;
        spec->gamma = gamma;
    }
    return PHEMA_OK;
}

static enum phema_status parse_all(struct phema_spec *spec, const char *text,
                                   struct phema_error *err)
{
    const char *minus = find_minus(text);
    size_t size = minus ? (size_t)(minus - text) : strlen(text);
    enum phema_status status = parse_terms(spec, 1, text, size, err);
    if (!status && minus)
        status = parse_terms(spec, -1, minus + 3, strlen(minus + 3), err);
    if (!status)
        status = resolve_powers(spec, err);
    if (status)
        return status;
    spec->kind = minus ? "difference" : spec->terms[0].kind->name;
    spec->is_average = !minus && spec->terms[0].kind->build < BUILD_BEMA; /* no sum of several */
    spec->is_by_gamma = !isnan(spec->gamma) && isnan(spec_value(&spec->terms[0], "sigma"));
    return format(spec, err);
}

PHEMA_FALLIBLE phema_spec_parse(struct phema_spec **out, struct phema_arena *arena,
                                const char *text, struct phema_error *err)
{
    struct phema_name_buffer shown;
    if (strlen(text) > PHEMA_SPEC_MAX_SIZE)
        return phema_fail(err, PHEMA_ERR_USAGE, "a profile of %zu bytes is longer than %zu",
                          strlen(text), PHEMA_SPEC_MAX_SIZE);
    struct phema_spec *spec = phema_arena_alloc(arena, sizeof(*spec));
    if (!spec)
        return phema_fail_memory(err);
    spec->arena = arena;
    enum phema_status status = parse_all(spec, text, err);
    if (status)
        return phema_fail_in(err, status, "'%s'", phema_name_show(&shown, text));
    *out = spec;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_specs_find(struct phema_spec **out, struct phema_specs *specs,
                                const char *text, struct phema_error *err)
{
    for (struct phema_spec *spec = specs->first; spec; spec = spec->next)
        if (strcmp(spec->text, text) == 0) {
            *out = spec;
            return PHEMA_OK;
        }
    if (specs->n == PHEMA_MAX_SPECS)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "there are more than %zu different profiles",
                          PHEMA_MAX_SPECS);
    struct phema_spec *spec = NULL;
    enum phema_status status = phema_spec_parse(&spec, specs->arena, text, err);
    if (status)
        return status;
    spec->text = phema_arena_copy(specs->arena, text, strlen(text));
    if (!spec->text)
        return phema_fail_memory(err);
    spec->next = specs->first;
    specs->first = spec;
    specs->n++;
    *out = spec;
    return PHEMA_OK;
}
