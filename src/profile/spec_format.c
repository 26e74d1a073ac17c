// SPDX-License-Identifier: Apache-2.0
/* spec_format.c - SPEC back to canonical text, which parses to the same average to the last bit,
 * and to a part of a file name. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "spec.h"

/* Names of files are at most 255 bytes, with a prefix, a time and endings. */
#define MAX_FILE_PART ((size_t)120)

static void append_value(struct phema_strbuf *text, const struct spec_key *key, double value)
{
    struct phema_name_buffer shown;
    struct phema_span word = {0};
    if (key->type == SPEC_CHOICE)
        word = spec_choice_word(key, value);
    if (key->type == SPEC_CHOICE)
        phema_strbuf_append(text, (const char *)word.data, word.size);
    else if (key->type == SPEC_YES_NO)
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
        if (!term->kind->is_bare)
            phema_strbuf_printf(text, "%s=", key->name);
        append_value(text, key, term->values[i]);
        separator = ',';
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
    const char *slash = term->path ? strrchr(term->path, '/') : NULL;
    if (term->path)
        phema_strbuf_printf(text, "-%s", slash ? slash + 1 : term->path);
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

PHEMA_FALLIBLE spec_format(struct phema_spec *spec, struct phema_error *err)
{
    struct phema_strbuf shown = {0}, file_part = {0};
    for (size_t i = 0; i < spec->n_terms; i++) {
        phema_strbuf_puts(&shown, i ? " - " : "");
        phema_strbuf_puts(&file_part, i ? "-minus-" : "");
        append_term(&shown, &spec->terms[i]);
        append_file_part(&file_part, &spec->terms[i]);
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
