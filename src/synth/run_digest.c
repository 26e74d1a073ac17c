// SPDX-License-Identifier: Apache-2.0
/* run_digest.c - see run_digest.h. FNV-1a of 64 bits: against mistakes, not against malice. */
#include "run_digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* The size goes in as well, so that neighbours do not run together. */
static void add_number(struct identity *identity, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        identity->state = (identity->state ^ (number >> 8 * i & 0xff)) * FNV_PRIME;
}

static void add_bytes(struct identity *identity, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    add_number(identity, size);
    for (size_t i = 0; i < size; i++)
        identity->state = (identity->state ^ bytes[i]) * FNV_PRIME;
}

static void add_text(struct identity *identity, const char *text)
{
    add_bytes(identity, text ? text : "", text ? strlen(text) : 0);
}

static enum phema_status add_file(struct identity *identity, const char *path,
                                  struct phema_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be examined: %s", path, strerror(errno));
    add_number(identity, (uint64_t)st.st_size);
    add_number(identity, (uint64_t)st.st_mtim.tv_sec);
    add_number(identity, (uint64_t)st.st_mtim.tv_nsec);
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_digest_of_inputs(struct identity *out, const struct phema_plan *plan,
                                    const struct phema_synth_options *options,
                                    struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct identity identity = {.state = FNV_START};
    add_text(&identity, PHEMA_VERSION);
    add_number(&identity, options->sums);
    add_number(&identity, options->overflow);
    if (options->device.uses_blas) /* whose sums depend on how many there are */
        add_number(&identity, plan->m);
    add_number(&identity, series->n);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        add_text(&identity, series->snapshots[k].label);
        for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++) {
            enum phema_status status =
                add_file(&identity, phema_file_path(phema_checkpoint_file(checkpoint, f)), err);
            if (status)
                return status;
        }
    }
    *out = identity;
    return PHEMA_OK;
}

/* What a copy begins as, and what of it is replaced. */
static void add_template(struct identity *identity, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, const struct phema_output *output)
{
    struct phema_error err;
    if (add_file(identity, phema_file_path(phema_checkpoint_file(output->template, 0)), &err))
        add_text(identity, err.message); /* gone: opening the copy says so */
    add_text(identity, output->sidecar);
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        add_number(identity, outputs->is_replaced[i]);
        add_number(identity, outputs->dtypes[i]);
        add_number(identity, output->places[i].offset + output->shift);
    }
}

struct identity run_digest_of_output(const struct identity *inputs, const struct phema_plan *plan,
                                     const struct phema_outputs *outputs, size_t output)
{
    struct identity identity = *inputs;
    const struct phema_output *item = &outputs->items[output];
    add_number(&identity, outputs->form);
    add_number(&identity, item->n_files);
    for (size_t f = 0; f < item->n_files; f++) {
        add_text(&identity, item->files[f].name);
        add_bytes(&identity, item->files[f].header, item->files[f].header_size);
        add_number(&identity, item->files[f].size_bytes);
    }
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        add_text(&identity, outputs->side_files[f].name);
        add_text(&identity, outputs->side_files[f].text);
    }
    if (item->template)
        add_template(&identity, plan, outputs, item);
    (void)snprintf(identity.digest, sizeof(identity.digest), "%016" PRIx64, identity.state);
    return identity;
}
