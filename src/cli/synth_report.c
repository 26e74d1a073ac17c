// SPDX-License-Identifier: Apache-2.0
/* synth_report.c - on stderr, what a run has done. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print_summary.h"
#include "series_options.h"

static size_t directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What is left to do: outputs beside each other are joined by the directory that holds them. */
static void report_join(const struct phema_outputs *outputs, uint64_t n_parts)
{
    const char *first = outputs->items[0].path;
    size_t size = directory_size(first);
    bool is_beside = outputs->m > 1;
    for (size_t j = 1; j < outputs->m; j++)
        is_beside = is_beside && directory_size(outputs->items[j].path) == size &&
                    memcmp(outputs->items[j].path, first, size) == 0;
    struct phema_strbuf text = {0};
    char *directory = size ? strndup(first, size) : strdup("./");
    for (size_t j = 0; j < outputs->m && !is_beside; j++) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, outputs->items[j].path);
    }
    if (is_beside && directory) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, directory);
    }
    if (text.data && !text.is_failed)
        cli_say("when all %llu parts are written: posthoc-ema join%s", (unsigned long long)n_parts,
                text.data);
    free(directory);
    phema_strbuf_clear(&text);
}

static void report_io(const struct phema_synth_result *result)
{
    const char *between = "snapshots: ";
    if (result->n_mapped)
        (void)fprintf(stderr, "%s%zu file%s mapped", between, result->n_mapped,
                      result->n_mapped == 1 ? "" : "s");
    between = result->n_mapped ? ", " : between;
    if (result->n_read)
        (void)fprintf(stderr, "%s%zu file%s read", between, result->n_read,
                      result->n_read == 1 ? "" : "s");
    if (result->n_read && result->filesystem)
        (void)fprintf(stderr, " (on %s)", result->filesystem);
    between = result->n_read ? ", " : between;
    if (result->n_direct)
        (void)fprintf(stderr, "%s%zu file%s read past the page cache", between, result->n_direct,
                      result->n_direct == 1 ? "" : "s");
    (void)fprintf(stderr, "\n");
}

static void report_resumed(const struct phema_synth_result *result)
{
    struct phema_name_buffer read;
    if (result->n_resumed)
        (void)fprintf(stderr,
                      "went on with %zu output%s of an ended run: %s need not be read again\n",
                      result->n_resumed, result->n_resumed == 1 ? "" : "s",
                      phema_size_format(&read, result->resumed_bytes));
    if (result->n_stale_journals)
        (void)fprintf(stderr,
                      "%zu output%s begun by a run with other snapshots, weights or options, and "
                      "%s made anew\n",
                      result->n_stale_journals, result->n_stale_journals == 1 ? " was" : "s were",
                      result->n_stale_journals == 1 ? "is" : "are");
    if (result->n_not_resumable)
        (void)fprintf(stderr,
                      "%zu output%s of a form that is always made in one go: a copy whose tensors "
                      "are strided or overlap\n",
                      result->n_not_resumable, result->n_not_resumable == 1 ? " is" : "s are");
}

void report_synth(const struct cli_common *common, const struct phema_plan *plan,
                  const struct phema_outputs *outputs, const struct phema_synth_result *result)
{
    if (common->is_quiet)
        return;
    struct phema_name_buffer written, read, rate, memory, name;
    const struct phema_series *series = plan->series;
    if (result->n_nan + result->n_inf)
        cli_say("warning: %llu NaN and %llu infinite elements, the first in tensor '%s'",
                (unsigned long long)result->n_nan, (unsigned long long)result->n_inf,
                phema_name_escape(&name, series->tensors[result->nan_tensor].tensor.name,
                                  series->tensors[result->nan_tensor].tensor.name_size));
    if (result->n_overflow)
        (void)fprintf(stderr, "warning: %llu averages were too large for the dtype\n",
                      (unsigned long long)result->n_overflow);
    if (result->n_stale_partials)
        (void)fprintf(stderr, "%zu output%s begun by a run that was killed, and %s made anew\n",
                      result->n_stale_partials, result->n_stale_partials == 1 ? " was" : "s were",
                      result->n_stale_partials == 1 ? "is" : "are");
    report_resumed(result);
    double worst = 0;
    for (size_t j = 0; j < plan->m; j++)
        worst = fmax(worst, plan->targets[j].solution.profile_error);
    if (result->n_parts)
        (void)fprintf(stderr, "part %llu of %llu of ", (unsigned long long)result->part,
                      (unsigned long long)result->n_parts);
    (void)fprintf(stderr, "%zu output%s, %s, in %.2f s: read %s (%s/s), peak anonymous memory %s",
                  outputs->m, outputs->m == 1 ? "" : "s",
                  phema_size_format(&written, result->written_bytes), result->elapsed_s,
                  phema_size_format(&read, result->read_bytes),
                  phema_size_format(&rate, (uint64_t)((double)result->read_bytes /
                                                      fmax(result->elapsed_s, 1e-6))),
                  phema_size_format(&memory, result->peak_anonymous_bytes));
    if (!isnan(plan->targets[0].solution.profile_error))
        (void)fprintf(stderr, ", profile error %.2e%s", worst, plan->m > 1 ? " at most" : "");
    (void)fprintf(stderr, "\n");
    if (common->is_verbose)
        report_io(result);
    if (common->is_verbose)
        (void)fprintf(stderr,
                      "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; "
                      "kernels %s, %u thread%s\n",
                      result->n_averaged, result->n_copied, result->n_constant, result->backend,
                      result->n_threads, result->n_threads == 1 ? "" : "s");
    if (result->n_parts)
        report_join(outputs, result->n_parts);
}
