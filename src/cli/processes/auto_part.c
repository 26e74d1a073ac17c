// SPDX-License-Identifier: Apache-2.0
/* auto_part.c - --part I/N and --part auto. */
#include "processes/auto_part.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/cli.h"
#include "processes/join_outputs.h"
#include "processes/launcher.h"
#include "processes/published_parts.h"
#include "remedy/remedy.h"

/* ---- The option ---- */

/* "2/8" */
static enum phema_status read_numbers(uint64_t *part, uint64_t *n_parts, const char *text,
                                      struct phema_error *err)
{
    uint64_t numbers[2] = {0, 0};
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        for (; *at >= '0' && *at <= '9' && numbers[i] <= PHEMA_MAX_PARTS; at++)
            numbers[i] = 10 * numbers[i] + (uint64_t)(*at - '0');
        if (i == 0 && *at++ != '/')
            break;
    }
    if (numbers[0] < 1 || numbers[0] > numbers[1] || numbers[1] > PHEMA_MAX_PARTS || *at)
        return cli_suggest(
            err,
            cli_fail_option(err, PHEMA_ERR_USAGE, "part",
                            "'%s' is not I/N with I from 1 to N and N up to %d, such as 2/8, "
                            "and not auto",
                            text, PHEMA_MAX_PARTS),
            "part", "1/2");
    *part = numbers[0];
    *n_parts = numbers[1];
    return PHEMA_OK;
}

PHEMA_FALLIBLE part_option_read(struct cli_synth_values *args, struct phema_error *err)
{
    struct phema_synth_options *options = &args->run.synth;
    if (!args->part)
        return args->common.team ? launcher_check_library(args->common.team->size, err)
                                 : launcher_check_alone(err);
    args->joins = strcmp(args->part, "auto") == 0;
    if (!args->joins)
        return read_numbers(&options->part, &options->n_parts, args->part, err);
    struct launcher launcher;
    enum phema_status status = launcher_read(&launcher, err);
    if (status)
        return status;
    options->part = launcher.rank + 1;
    options->n_parts = launcher.size;
    args->says_waiting = !args->common.style.is_quiet; /* whatever the part: the job stands still */
    args->common.style.is_mute =
        launcher.rank && !args->common.style.is_verbose; /* the first one warns */
    args->common.style.is_quiet = args->common.style.is_quiet || args->common.style.is_mute;
    return PHEMA_OK;
}

/* ---- Parts of an earlier run ---- */

PHEMA_FALLIBLE auto_part_keep_paths(struct auto_part *out, const struct phema_outputs *outputs,
                                    struct phema_error *err)
{
    out->paths = calloc(outputs->m + 1, sizeof(*out->paths));
    if (!out->paths)
        return phema_fail_memory(err);
    for (; out->n < outputs->m; out->n++) {
        out->paths[out->n] = strdup(outputs->items[out->n].path);
        if (!out->paths[out->n])
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

static size_t count_done(const bool *is_done, size_t m)
{
    size_t n = 0;
    for (size_t j = 0; j < m; j++)
        n += is_done[j];
    return n;
}

static enum phema_status find_done(bool *is_done, size_t *n_done, struct cli_prepared *prepared,
                                   struct phema_error *err)
{
    size_t m = prepared->outputs.m;
    enum phema_status status = phema_synth_find_done_parts(
        is_done, prepared->plan, &prepared->outputs, &prepared->options, err);
    *n_done = status ? 0 : count_done(is_done, m);
    if (prepared->options.gpu.uses_blas && *n_done < m) /* sums depend on the number of targets */
        *n_done = 0;
    return status;
}

/* A part that is seen to be done here needs nothing, whether or not another process joins it now.
 * One that was joined before has no marker, and its output is found to be up to date afterwards. */
PHEMA_FALLIBLE auto_part_skip_done(struct auto_part *out, struct cli_prepared *prepared,
                                   const struct cli_synth_values *args, struct phema_error *err)
{
    size_t m = prepared->outputs.m, n_done = 0;
    enum phema_status status = auto_part_keep_paths(out, &prepared->outputs, err);
    if (status)
        return status;
    bool *is_done = calloc(m + 1, sizeof(*is_done));
    if (!is_done)
        return phema_fail_memory(err);
    status = find_done(is_done, &n_done, prepared, err);
    for (size_t j = m; j-- > 0 && n_done && !status;)
        if (is_done[j])
            phema_outputs_remove(&prepared->outputs, prepared->plan, j);
    free(is_done);
    if (n_done && !status && !args->common.style.is_quiet)
        render_say("part %llu of %llu is already written, of %zu of %zu output%s",
                   (unsigned long long)args->run.synth.part,
                   (unsigned long long)args->run.synth.n_parts, n_done, m, m == 1 ? "" : "s");
    return status;
}

/* ---- The end ---- */

PHEMA_FALLIBLE auto_part_join(const struct auto_part *part, const struct cli_synth_values *args,
                              struct phema_strbuf *text, struct phema_error *err)
{
    enum join_result result = JOIN_NOTHING;
    struct phema_strbuf paths = {0};
    struct published_parts published = {.part = part, .args = args};
    struct join_request request = published_parts_request(&published);
    enum phema_status status = join_when_done(&result, &request, &paths, err);
    if (!status && paths.data && !args->common.style.is_json)
        phema_strbuf_puts(text, paths.data);
    phema_strbuf_clear(&paths);
    if (!status && result == JOIN_WAITS && !args->common.style.is_quiet)
        render_say(
            "the last of %llu processes joins the parts; where one fails, the same command again "
            "makes what is missing",
            (unsigned long long)args->run.synth.n_parts);
    return status;
}

void auto_part_clear(struct auto_part *part)
{
    for (size_t j = 0; j < part->n; j++)
        free(part->paths[j]);
    free(part->paths);
    *part = (struct auto_part){0};
}

enum phema_status auto_part_name_process(const struct cli_synth_values *args,
                                         enum phema_status status, struct phema_error *err)
{
    char host[128] = "";
    struct phema_name_buffer shown;
    if (gethostname(host, sizeof(host) - 1))
        host[0] = '\0';
    return phema_fail_in(
        err, status, "part %llu of %llu on %s", (unsigned long long)args->run.synth.part,
        (unsigned long long)args->run.synth.n_parts, phema_name_escape(&shown, host, strlen(host)));
}
