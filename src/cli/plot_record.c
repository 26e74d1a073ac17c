// SPDX-License-Identifier: Apache-2.0
/* plot_record.c - pictures of files that other verbs have written. */
#include <stdio.h>
#include <string.h>

#include "phema/mapped_file.h"
#include "plot_data.h"

/* A record of stages or of scores is some KiB; what is larger is something else. */
#define MOST_RECORD ((size_t)16 << 20)

static enum phema_status open_record(struct phema_file **out, const char *path,
                                     struct phema_error *err)
{
    enum phema_status status = phema_file_open(out, path, err);
    size_t size = status ? 0 : phema_file_span(*out).size;
    if (size > MOST_RECORD)
        status = phema_fail(err, PHEMA_ERR_FILE, "expected at most %zu bytes, found %zu",
                            MOST_RECORD, size);
    return status;
}

static const char *title_of(struct phema_strbuf *text, const char *path, const char *what)
{
    struct phema_name_buffer name;
    phema_strbuf_printf(text, "%s: %s", phema_name_escape(&name, path, strlen(path)), what);
    return text->data;
}

PHEMA_FALLIBLE plot_memory(struct phema_picture **out, const char *path, uint64_t max_ram,
                           struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_strbuf title = {0};
    enum phema_status status = open_record(&file, path, err);
    if (!status && !title_of(&title, path, "memory of a run"))
        status = phema_fail_memory(err);
    if (!status)
        status = phema_plot_memory(out, title.data, phema_file_span(file), max_ram, err);
    phema_file_close(file);
    phema_strbuf_clear(&title);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}

PHEMA_FALLIBLE plot_scores(struct phema_picture **out, const char *path, bool maximizes,
                           bool is_quiet, struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_strbuf title = {0};
    size_t n_left_out = 0;
    enum phema_status status = open_record(&file, path, err);
    if (!status && !title_of(&title, path, "scores of averages"))
        status = phema_fail_memory(err);
    if (!status) {
        const struct phema_plot_sweep sweep = {
            .title = title.data, .csv = phema_file_span(file), .maximizes = maximizes};
        status = phema_plot_sweep(out, &n_left_out, &sweep, err);
    }
    phema_file_close(file);
    phema_strbuf_clear(&title);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    if (n_left_out && !is_quiet)
        cli_say("%s: %zu line%s without a finite score left out", path, n_left_out,
                n_left_out == 1 ? "" : "s");
    return PHEMA_OK;
}
