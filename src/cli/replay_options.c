// SPDX-License-Identifier: Apache-2.0
/* replay_options.c - the command that a provenance records, parsed again. */
#include "replay_options.h"

#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

/* More words than any shell accepts. */
#define MAX_WORDS 65536

struct words {
    char *text; /* all words, each with a NUL */
    char **items;
    int n;
};

static void words_clear(struct words *words)
{
    free(words->text);
    free(words->items);
}

/* Copies one word from *at to *to, without its quotes. */
static void unquote(const char **at, char **to)
{
    bool is_quoted = false;
    for (; **at && (is_quoted || **at != ' '); (*at)++) {
        if (**at == '\'')
            is_quoted = !is_quoted;
        else if (**at == '\\' && !is_quoted && (*at)[1])
            *(*to)++ = *++*at;
        else
            *(*to)++ = **at;
    }
    *(*to)++ = '\0';
}

/* Appends "--" and OUT to the words of the command. */
static enum phema_status split(struct words *words, const char *command, const char *out,
                               struct phema_error *err)
{
    static const char dashes[] = "--";
    size_t size = strlen(command) + strlen(out) + sizeof(dashes) + 2, n_spaces = 0;
    for (const char *at = command; *at; at++)
        n_spaces += *at == ' ';
    if (n_spaces > MAX_WORDS)
        return phema_fail(err, PHEMA_ERR_FILE, "the command has more than %d words", MAX_WORDS);
    words->text = malloc(size);
    words->items = calloc(n_spaces + 4, sizeof(char *));
    if (!words->text || !words->items)
        return phema_fail_memory(err);
    char *to = words->text;
    for (const char *at = command; *at;) {
        if (*at == ' ') {
            at++;
            continue;
        }
        words->items[words->n++] = to;
        unquote(&at, &to);
    }
    words->items[words->n++] = memcpy(to, dashes, sizeof(dashes));
    to += sizeof(dashes);
    words->items[words->n++] = memcpy(to, out, strlen(out) + 1);
    return PHEMA_OK;
}

static enum phema_status parse(struct cli_synth_values *values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err)
{
    struct words words = {0};
    enum phema_status status = split(&words, command, out, err);
    bool is_synth = !status && words.n > 3 && strcmp(words.items[0], "posthoc-ema") == 0 &&
                    strcmp(words.items[1], synth->name) == 0;
    if (!status && !is_synth)
        status = phema_fail(err, PHEMA_ERR_FILE, "its command is none of posthoc-ema synth");
    if (!status) {
        /* values point into the words */
        char *text =
            phema_arena_copy(&values->common.arena, words.text, strlen(command) + strlen(out) + 4);
        for (int i = 0; text && i < words.n; i++)
            words.items[i] = text + (words.items[i] - words.text);
        status =
            text ? cli_parse(synth, values, words.n, words.items, err) : phema_fail_memory(err);
        if (status == PHEMA_ERR_USAGE)
            status = phema_fail_in(err, PHEMA_ERR_FILE, "its command");
        if (!status && (values->common.is_help || !values->run.outputs.out ||
                        values->run.plan.options.is_conversion))
            status = phema_fail(err, PHEMA_ERR_FILE, "its command makes no average");
        values->run.plan.max_error = PHEMA_UNKNOWN; /* --max-error does not affect the bytes */
    }
    words_clear(&words);
    return status;
}

PHEMA_FALLIBLE cli_replay_read(struct cli_synth_values **values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err)
{
    struct cli_synth_values *read = calloc(1, sizeof(*read));
    if (!read)
        return phema_fail_memory(err);
    enum phema_status status = parse(read, synth, command, out, err);
    if (status)
        cli_replay_free(read);
    else
        *values = read;
    return status;
}

void cli_replay_free(struct cli_synth_values *values)
{
    if (values)
        phema_arena_clear(&values->common.arena);
    free(values);
}

/* ---- Options that determine bytes ---- */

static bool is_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool are_same(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
    bool are = n_a == n_b;
    for (size_t i = 0; are && i < n_a; i++)
        are = strcmp(a[i], b[i]) == 0;
    return are;
}

const char *cli_replay_difference(const struct cli_run_values *a, const struct cli_run_values *b)
{
    const struct phema_series_options *from = &a->plan.options.series,
                                      *to = &b->plan.options.series;
    const struct {
        const char *name;
        bool is_same;
    } options[] = {
        {"dtype", a->dtype == b->dtype},
        {"overflow", a->synth.overflow == b->synth.overflow},
        {"buffers", from->averages_buffers == to->averages_buffers},
        {"accumulate", a->accumulate == b->accumulate},
        {"gpu-sums", a->synth.gpu.uses_blas == b->synth.gpu.uses_blas},
        {"into", is_same(a->outputs.into, b->outputs.into)},
        {"key", is_same(from->key, to->key)},
        {"include", are_same(from->includes, from->n_includes, to->includes, to->n_includes)},
        {"exclude", are_same(from->excludes, from->n_excludes, to->excludes, to->n_excludes)},
        {"shard-size", a->outputs.shard_bytes == b->outputs.shard_bytes},
        {"level", (a->level ? a->level : 3) == (b->level ? b->level : 3)},
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (!options[i].is_same)
            return options[i].name;
    return NULL;
}
