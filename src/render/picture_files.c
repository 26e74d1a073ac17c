// SPDX-License-Identifier: Apache-2.0
/* picture_files.c - a picture in one or two files. */
#include "phema/report.h"
#include "phema/writer.h"

PHEMA_FALLIBLE picture_files_claim(const struct picture_files *files, struct phema_claims *claims,
                                   struct phema_error *err)
{
    for (size_t i = 0; i < files->n; i++) {
        enum phema_status status = phema_claims_check(claims, files->paths[i], err);
        if (!status)
            status = phema_claims_add_output(claims, files->paths[i], err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE picture_files_check(const struct picture_files *files, const char *path,
                                   struct phema_error *err)
{
    struct phema_claims *claims = NULL;
    enum phema_status status = phema_claims_new(&claims, err);
    if (!status)
        status = phema_claims_add_input(claims, path, "the file that is drawn", err);
    if (!status)
        status = picture_files_claim(files, claims, err);
    phema_claims_free(claims);
    return status;
}

static enum phema_status write_file(struct picture_files *files, size_t i,
                                    const struct phema_picture *picture, bool replaces,
                                    struct phema_error *err)
{
    struct phema_strbuf bytes = {0};
    struct phema_writer_options options = {.replaces = replaces, .syncs = true};
    enum phema_status status = phema_picture_write(&bytes, picture, files->formats[i], err);
    if (status)
        status = phema_fail_in(err, status, "%s", files->paths[i]);
    else
        status = phema_writer_open(&files->writers[i], files->paths[i], bytes.size, &options, err);
    if (!status)
        status = phema_writer_write(files->writers[i], 0, bytes.data, bytes.size, err);
    phema_strbuf_clear(&bytes);
    return status;
}

PHEMA_FALLIBLE picture_files_write(struct picture_files *files, const struct phema_picture *picture,
                                   bool replaces, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < files->n && !status; i++)
        status = write_file(files, i, picture, replaces, err);
    for (size_t i = 0; i < files->n; i++) {
        if (!status)
            status = phema_writer_commit(files->writers[i], err);
        else
            phema_writer_abandon(files->writers[i]);
    }
    return status;
}
