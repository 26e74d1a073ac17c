// SPDX-License-Identifier: Apache-2.0
/* run_digest.c - digest of everything that determines an output's bytes: FNV-1a of 64 bits, which
 * finds mistakes but does not resist forgery. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static void add_number(struct run_digest *digest, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        digest->state = (digest->state ^ (number >> 8 * i & 0xff)) * FNV_PRIME;
}

/* Hashes the size as well, to separate neighbouring fields. */
static void add_bytes(struct run_digest *digest, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    add_number(digest, size);
    for (size_t i = 0; i < size; i++)
        digest->state = (digest->state ^ bytes[i]) * FNV_PRIME;
}

static void add_text(struct run_digest *digest, const char *text)
{
    add_bytes(digest, text ? text : "", text ? strlen(text) : 0);
}

static enum phema_status add_file(struct run_digest *digest, const char *path,
                                  struct phema_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be examined: %s", path, strerror(errno));
    add_number(digest, (uint64_t)st.st_size);
    add_number(digest, (uint64_t)st.st_mtim.tv_sec);
    add_number(digest, (uint64_t)st.st_mtim.tv_nsec);
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_digest_of_inputs(struct run_digest *out, const struct phema_plan *plan,
                                    const struct phema_synth_options *options,
                                    struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct run_digest digest = {.state = FNV_START};
    add_text(&digest, PHEMA_VERSION);
    add_number(&digest, options->sums);
    add_number(&digest, options->overflow);
    if (options->gpu.uses_blas) /* its sums depend on the number of targets */
        add_number(&digest, plan->m);
    add_number(&digest, series->n);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        add_text(&digest, series->snapshots[k].label);
        for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
            enum phema_status status =
                add_file(&digest, phema_file_path(phema_checkpoint_file(checkpoint, f)), err);
            if (status)
                return status;
        }
    }
    *out = digest;
    return PHEMA_OK;
}

/* Hashes the template and the list of replaced tensors. */
static void add_template(struct run_digest *digest, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, const struct phema_output *output)
{
    struct phema_error err;
    for (size_t f = 0; f < phema_checkpoint_n_files(output->template); f++)
        if (add_file(digest, phema_file_path(phema_checkpoint_file(output->template, f)), &err))
            add_text(digest, err.message); /* gone: opening the copy reports it */
    add_text(digest, output->sidecar);
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        add_number(digest, outputs->is_replaced[i]);
        add_number(digest, outputs->dtypes[i]);
        add_number(digest, output->locations[i].offset + output->shift);
    }
}

struct run_digest run_digest_of_output(const struct run_digest *inputs,
                                       const struct phema_plan *plan,
                                       const struct phema_outputs *outputs, size_t output)
{
    struct run_digest digest = *inputs;
    const struct phema_output *item = &outputs->items[output];
    add_number(&digest, outputs->form);
    add_number(&digest, item->n_files);
    for (size_t f = 0; f < item->n_files; f++) {
        add_text(&digest, item->files[f].name);
        add_bytes(&digest, item->files[f].header, item->files[f].header_size);
        add_number(&digest, item->files[f].size_bytes);
    }
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        add_text(&digest, outputs->side_files[f].name);
        add_bytes(&digest, (const uint8_t *)outputs->side_files[f].text,
                  outputs->side_files[f].size);
    }
    if (item->template)
        add_template(&digest, plan, outputs, item);
    (void)snprintf(digest.text, sizeof(digest.text), "%016" PRIx64, digest.state);
    return digest;
}
