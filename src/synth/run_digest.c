// SPDX-License-Identifier: Apache-2.0
/* run_digest.c - digest of everything that determines an output's bytes: FNV-1a of 64 bits, which
 * finds mistakes but does not resist forgery. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static void add_number(uint64_t *digest, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++)
        *digest = (*digest ^ (number >> 8 * i & 0xff)) * FNV_PRIME;
}

/* Hashes the size as well, to separate neighbouring fields. */
static void add_bytes(uint64_t *digest, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    add_number(digest, size);
    for (size_t i = 0; i < size; i++)
        *digest = (*digest ^ bytes[i]) * FNV_PRIME;
}

static void add_text(uint64_t *digest, const char *text)
{
    add_bytes(digest, text ? text : "", text ? strlen(text) : 0);
}

/* As the file was when it was opened: a later change ends the run. */
static void add_file(uint64_t *digest, const struct phema_file *file)
{
    uint64_t size_bytes = 0;
    int64_t modified_s = 0, modified_ns = 0;
    phema_file_state(&size_bytes, &modified_s, &modified_ns, file);
    add_number(digest, size_bytes);
    add_number(digest, (uint64_t)modified_s);
    add_number(digest, (uint64_t)modified_ns);
}

/* The state that all outputs share. */
static void add_snapshots(uint64_t *digest, const struct phema_plan *plan,
                          const struct phema_synth_options *options)
{
    const struct phema_series *series = plan->series;
    add_text(digest, PHEMA_VERSION);
    add_number(digest, options->sums);
    add_number(digest, options->overflow);
    if (options->gpu.uses_blas) /* its sums depend on the number of targets */
        add_number(digest, plan->m);
    add_number(digest, series->n);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        add_text(digest, series->snapshots[k].label);
        for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++)
            add_file(digest, phema_checkpoint_file(checkpoint, f));
    }
}

/* Hashes the template and the list of replaced tensors. */
static void add_template(uint64_t *digest, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, const struct phema_output *output)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(output->template); f++)
        add_file(digest, phema_checkpoint_file(output->template, f));
    add_text(digest, output->sidecar);
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        add_number(digest, outputs->is_replaced[i]);
        add_number(digest, outputs->dtypes[i]);
        add_number(digest, output->locations[i].offset + output->shift);
    }
}

struct run_digest run_digest_make(const struct phema_plan *plan,
                                  const struct phema_outputs *outputs, size_t output,
                                  const struct phema_synth_options *options)
{
    uint64_t digest = FNV_START;
    const struct phema_output *item = &outputs->items[output];
    add_snapshots(&digest, plan, options);
    add_number(&digest, outputs->form);
    add_number(&digest, (uint64_t)outputs->level);
    add_number(&digest, item->n_files);
    for (size_t f = 0; f < item->n_files; f++) {
        add_text(&digest, item->files[f].name);
        add_bytes(&digest, item->files[f].header, item->files[f].header_size);
        add_number(&digest, item->files[f].size_bytes);
    }
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        add_text(&digest, outputs->side_files[f].name);
        add_bytes(&digest, outputs->side_files[f].text, outputs->side_files[f].size);
    }
    if (item->template)
        add_template(&digest, plan, outputs, item);
    struct run_digest text;
    (void)snprintf(text.text, sizeof(text.text), "%016" PRIx64, digest);
    return text;
}
