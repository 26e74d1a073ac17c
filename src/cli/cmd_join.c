// SPDX-License-Identifier: Apache-2.0
/* cmd_join.c - publishes outputs that several processes have written in parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "phema/path.h"
#include "phema/progress.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct join_values {
    struct cli_common common;
    struct cli_texts outs;
    struct phema_writer_options options;
};

/* Proposes an output that has parts beside an OUT that is not there; of one that is, to look at it. */
static enum phema_status fail_without_parts(const char *out, struct phema_error *err)
{
    char **beside = NULL, *directory = phema_path_directory(out);
    size_t n = 0;
    struct phema_error ignored = {0};
    enum phema_status status =
        phema_path_is_url(out)
            ? phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s", out, phema_path_reason(out, ENOENT))
            : phema_fail(err, PHEMA_ERR_OUTPUT,
                         phema_path_exists(out)
                             ? "%s: exists, but has no parts to join; synth --part I/N writes them"
                             : "%s: no parts found; make them with synth --part I/N",
                         out);
    if (directory && !phema_path_exists(out) &&
        !phema_writer_find_parts(&beside, &n, directory, &ignored) && n)
        (void)cli_suggest(err, status, "OUT",
                          strncmp(beside[0], "./", 2) == 0 ? beside[0] + 2 : beside[0]);
    else if (phema_path_exists(out))
        (void)cli_suggest_command(err, status, "posthoc-ema inspect", out);
    for (size_t i = 0; i < n; i++)
        free(beside[i]);
    free(beside);
    free(directory);
    return status;
}

/* OUT is an output, or a directory of several outputs. */
static enum phema_status add_all(struct phema_join_list *joins, const char *out,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err)
{
    char **paths = NULL;
    size_t n = 0;
    enum phema_status status = phema_writer_find_parts(&paths, &n, out, err);
    if (status)
        return status;
    if (n == 0)
        status = fail_without_parts(out, err);
    else
        status = phema_writer_reserve_descriptors(joins->n + n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = phema_join_add(joins, paths[i], options, err);
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    return status;
}

struct join_listener {
    struct render_listener shown;
    struct phema_strbuf text;
    struct phema_json_out json;
};

static void print_joined(void *context, const struct phema_writer_join *join)
{
    struct join_listener *listener = context;
    const char *path = phema_writer_join_path(join);
    if (listener->shown.style.is_json) {
        phema_json_out_open(&listener->json, NULL, '{');
        phema_json_out_path(&listener->json, "file", path);
        phema_json_out_u64(&listener->json, "bytes", phema_writer_join_bytes(join));
        phema_json_out_u64(&listener->json, "parts", phema_writer_join_n_parts(join));
        phema_json_out_close(&listener->json, '}');
    } else {
        render_write_path(&listener->text, path);
        phema_strbuf_puts(&listener->text, "\n");
    }
}

static enum phema_status commit_all(struct phema_join_list *joins, const struct join_values *args,
                                    struct phema_error *err)
{
    bool is_json = args->common.style.is_json;
    struct join_listener listener = {.text = {0}};
    render_listen(&listener.shown, &args->common.style);
    listener.shown.heard.joined = print_joined;
    if (is_json) {
        render_json_begin(&listener.json, &listener.text, true);
        phema_json_out_open(&listener.json, "outputs", '[');
    }
    enum phema_status status = phema_join_commit(joins, &listener.shown.heard, err);
    if (status) {
        phema_strbuf_clear(&listener.text);
        return status;
    }
    if (is_json) {
        phema_json_out_close(&listener.json, ']');
        render_write_warnings(&listener.json, &args->common.style);
        render_json_end(&listener.json);
    }
    return cli_print(&listener.text, &args->common.style, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct join_values *args = values;
    struct phema_join_list joins = {0};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < args->outs.n && !status; i++)
        status = add_all(&joins, args->outs.items[i], &args->options, err);
    if (!status)
        status = commit_all(&joins, args, err);
    phema_join_clear(&joins);
    return status;
}

#define FIELD(member) offsetof(struct join_values, member)

static const struct cli_opt rows[] = {
    {"OUT", OUTPUT, CLI_OPERANDS, FIELD(outs),
     .help = "OUT of synth --part: a file, or a directory, for\nall outputs with parts in it"},
    {"force", OUTPUT, CLI_FLAG, FIELD(options.replaces), .help = "replace existing outputs",
     .letter = 'f'},
    {"no-sync", OUTPUT, CLI_FLAG, FIELD(options.syncs),
     .help = "do not wait until outputs are safe on disk",
     .flags = CLI_NEGATED | CLI_INITIALLY_TRUE},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_join = {
    .name = "join",
    .summary = "finish outputs written by synth --part",
    .options = rows,
    .examples = "  posthoc-ema join out.safetensors\n"
                "      when all its parts are done; status 1 names those that are not\n"
                "  posthoc-ema join sweep/\n"
                "      all outputs in that directory\n",
    .values_size = sizeof(struct join_values),
    .run = run,
};
