// SPDX-License-Identifier: Apache-2.0
/* saved.c - series as files, for the program itself. */
#include "saved.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/accumulate.h"

/* Elements of a tensor. */
#define TENSOR ((size_t)128)

static void print_header(FILE *file, const struct stored *stored)
{
    size_t n_elems = stored->recording->n_elems;
    for (size_t at = 0; at < n_elems; at += TENSOR) {
        size_t n = n_elems - at < TENSOR ? n_elems - at : TENSOR;
        (void)fprintf(file, "%c\"t%04zu\":{\"dtype\":\"%s\",\"shape\":[%zu],", at ? ',' : '{',
                      at / TENSOR, phema_dtype_name(stored->dtype), n);
        (void)fprintf(file, "\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                      phema_dtype_bytes(stored->dtype, at),
                      phema_dtype_bytes(stored->dtype, at + n));
    }
    (void)fprintf(file, "}");
}

static enum phema_status make_header(char **text, size_t *size, const struct stored *stored,
                                     struct phema_error *err)
{
    FILE *stream = open_memstream(text, size);
    if (!stream)
        return phema_fail_memory(err);
    print_header(stream, stored);
    while (!fflush(stream) && *size % 8)
        (void)fputc(' ', stream);
    return fclose(stream) ? phema_fail_memory(err) : PHEMA_OK;
}

static FILE *create(char **path, const char *directory, const char *name, struct phema_error *err)
{
    FILE *file = NULL;
    if (asprintf(path, "%s/%s", directory, name) < 0)
        *path = NULL;
    else
        file = fopen(*path, "we");
    if (!file)
        (void)phema_fail(err, PHEMA_ERR_OUTPUT, "%s/%s: %s", directory, name, strerror(errno));
    return file;
}

static enum phema_status write_snapshot(const char *directory, const char *name,
                                        const struct stored *stored, size_t i,
                                        struct phema_error *err)
{
    size_t n_elems = stored->recording->n_elems, header_size = 0;
    char *header = NULL, *path = NULL;
    struct phema_narrow_counts counts = {0};
    uint64_t size = phema_dtype_bytes(stored->dtype, n_elems);
    void *data = malloc(size);
    enum phema_status status =
        data ? make_header(&header, &header_size, stored, err) : phema_fail_memory(err);
    FILE *file = status ? NULL : create(&path, directory, name, err);
    if (file) {
        uint64_t length = header_size; /* all machines that this runs on are little-endian */
        phema_narrow(phema_backend_for_cpu(), data, stored->dtype, PHEMA_ACCUMULATE_F64,
                     stored->values + i * n_elems, n_elems, PHEMA_OVERFLOW_INF, &counts);
        (void)fwrite(&length, sizeof(length), 1, file);
        (void)fwrite(header, 1, header_size, file);
        (void)fwrite(data, 1, size, file);
    }
    if (!status && (!file || ferror(file) | fclose(file)))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s/%s: cannot be written", directory, name);
    free(path);
    free(data);
    free(header);
    return status;
}

static void print_label(FILE *file, const struct phema_profile *profile)
{
    if (profile->shape == PHEMA_SHAPE_RAW)
        (void)fprintf(file, "\"raw\"");
    else if (profile->shape == PHEMA_SHAPE_EMA)
        (void)fprintf(file, "{\"kind\":\"ema\",\"half_life\":%.17g}", profile->half_life);
    else
        (void)fprintf(file, "{\"kind\":\"power\",\"gamma\":%.17g,\"update_every\":%d}",
                      profile->gamma, profile->update_every ? (int)profile->update_every : 1);
}

static enum phema_status write_series(const char *directory, const struct stored *stored,
                                      struct phema_error *err)
{
    char *path = NULL;
    enum phema_status status = PHEMA_OK;
    FILE *manifest = create(&path, directory, "manifest.json", err);
    if (!manifest)
        return PHEMA_ERR_OUTPUT;
    for (size_t i = 0; !status && i < stored->n; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%03zu.safetensors", i);
        (void)fprintf(manifest, "%s\n{\"file\":\"%s\",\"time\":%.0f,\"profile\":",
                      i ? "," : "{\"snapshots\":[", name, stored->profiles[i].t);
        print_label(manifest, &stored->profiles[i]);
        (void)fprintf(manifest, "}");
        status = write_snapshot(directory, name, stored, i, err);
    }
    (void)fprintf(manifest, "]}\n");
    if (ferror(manifest) | fclose(manifest) && !status)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be written", path);
    free(path);
    return status;
}

enum phema_status saved_write(const char *directory, const struct stored *stored,
                              const struct series_kind *kind, struct phema_error *err)
{
    char *path = NULL;
    const struct recording *recording = stored->recording;
    if (asprintf(&path, "%s/%s-%" PRIu64 "-%" PRIu64 "-%s-%s-%zu", directory,
                 recording->regime->name, recording->n_steps, recording->regime->seed, kind->name,
                 phema_dtype_name(stored->dtype), stored->n / kind->n_tracked) < 0)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (mkdir(path, 0777) && errno != EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s", path, strerror(errno));
    if (!status)
        status = write_series(path, stored, err);
    free(path);
    return status;
}
