// SPDX-License-Identifier: Apache-2.0
/* replay_options.c - see replay_options.h. */
#include "replay_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- Words ---- */

/* More than any shell passes on. */
#define MAX_WORDS 65536

struct words {
    char *text; /* of all of them, each with a NUL */
    char **items;
    int n;
};

static void words_clear(struct words *words)
{
    free(words->text);
    free(words->items);
}

/* One word from *at on to *to, which it is never longer than. */
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

/* "--" and OUT stand behind the words of the command. */
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

static enum phema_status parse(struct cli_synth_values *values, const char *command,
                               const char *out, struct phema_error *err)
{
    struct words words = {0};
    enum phema_status status = split(&words, command, out, err);
    bool is_synth = !status && words.n > 3 && strcmp(words.items[0], "posthoc-ema") == 0 &&
                    strcmp(words.items[1], cli_synth.name) == 0;
    if (!status && !is_synth)
        status = phema_fail(err, PHEMA_ERR_FILE, "its command is none of posthoc-ema synth");
    if (!status) {
        /* values point into the words */
        char *text =
            phema_arena_copy(&values->common.arena, words.text, strlen(command) + strlen(out) + 4);
        for (int i = 0; text && i < words.n; i++)
            words.items[i] = text + (words.items[i] - words.text);
        status = text ? cli_parse(&cli_synth, values, words.n, words.items, err)
                      : phema_fail_memory(err);
        if (status == PHEMA_ERR_USAGE)
            status = phema_fail_in(err, PHEMA_ERR_FILE, "its command");
        if (!status && (values->common.is_help || !values->run.out || values->run.is_conversion))
            status = phema_fail(err, PHEMA_ERR_FILE, "its command makes no average");
        values->run.target.max_error = PHEMA_UNKNOWN; /* a gate is no part of what was made */
    }
    words_clear(&words);
    return status;
}

PHEMA_FALLIBLE cli_again_read(struct cli_synth_values **values, const char *command,
                              const char *out, struct phema_error *err)
{
    struct cli_synth_values *read = calloc(1, sizeof(*read));
    if (!read)
        return phema_fail_memory(err);
    enum phema_status status = parse(read, command, out, err);
    if (status)
        cli_again_free(read);
    else
        *values = read;
    return status;
}

void cli_again_free(struct cli_synth_values *values)
{
    if (values)
        phema_arena_clear(&values->common.arena);
    free(values);
}

/* ---- What shapes bytes ---- */

/* unsaid: what it means where an option was not given */
static bool is_same(const char *a, const char *b, const char *unsaid)
{
    return strcmp(a ? a : unsaid, b ? b : unsaid) == 0;
}

static bool are_same(const struct cli_texts *a, const struct cli_texts *b)
{
    bool are = a->n == b->n;
    for (size_t i = 0; are && i < a->n; i++)
        are = strcmp(a->items[i], b->items[i]) == 0;
    return are;
}

const char *cli_again_differs(const struct cli_run_values *a, const struct cli_run_values *b)
{
    const struct {
        const char *name;
        bool is_same;
    } options[] = {
        {"dtype", is_same(a->dtype, b->dtype, "same")},
        {"overflow", is_same(a->overflow, b->overflow, "error")},
        {"buffers", is_same(a->series.buffers, b->series.buffers, "newest")},
        {"accumulate", is_same(a->accumulate, b->accumulate, "auto")},
        {"gpu-sums", is_same(a->gpu_sums, b->gpu_sums, "exact")},
        {"into", is_same(a->into, b->into, "")},
        {"key", is_same(a->series.key, b->series.key, "")},
        {"include", are_same(&a->series.include, &b->series.include)},
        {"exclude", are_same(&a->series.exclude, &b->series.exclude)},
        {"shard-size", a->shard_size == b->shard_size},
        {"level", (a->level ? a->level : 3) == (b->level ? b->level : 3)},
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (!options[i].is_same)
            return options[i].name;
    return NULL;
}
