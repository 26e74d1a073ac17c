// SPDX-License-Identifier: Apache-2.0
/* frozen.c - The tensors that a training does not change: one file beside the snapshots, which name
 * it (docs/formats/safetensors.md). A snapshot lists them as its own. */
#include "format.h"
#include "phema/strbuf.h"

/* The digest among the metadata from `first` on, which are removed; "": none. */
static const char *take_digest(struct phema_checkpoint *checkpoint, size_t first)
{
    const char *digest = "";
    for (size_t i = first; i < checkpoint->n_metadata; i++)
        if (strcmp(checkpoint->metadata[i].key, PHEMA_FROZEN_DIGEST) == 0)
            digest = checkpoint->metadata[i].value;
    checkpoint->n_metadata = first;
    return digest;
}

static enum phema_status read_frozen(struct phema_checkpoint *checkpoint, const char *name,
                                     struct phema_error *err)
{
    const char *wanted = phema_checkpoint_metadatum(checkpoint, PHEMA_FROZEN_DIGEST);
    size_t n_tensors = checkpoint->n_tensors, n_metadata = checkpoint->n_metadata;
    checkpoint->header = (struct header_text){0}; /* which other files might seem to share */
    if (checkpoint->frames)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "a compressed file has to hold all of its tensors; decompress it");
    if (strchr(name, '/'))
        return phema_fail(err, PHEMA_ERR_INPUTS, "expected a name without directories");
    enum phema_status status = checkpoint_add_relative(checkpoint, name, strlen(name), err);
    if (!status)
        status = safetensors_read(checkpoint, checkpoint->n_files - 1, true, NULL, err);
    if (status)
        return status;
    const char *found = take_digest(checkpoint, n_metadata);
    struct phema_name_buffer left, right;
    wanted = wanted ? wanted : "";
    if (!*wanted || strcmp(wanted, found) != 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "it is of another training: expected " PHEMA_FROZEN_DIGEST
                          " '%s', found '%s'",
                          phema_name_show(&left, wanted), phema_name_show(&right, found));
    checkpoint->files[checkpoint->n_files - 1].is_shared = true;
    for (size_t i = n_tensors; i < checkpoint->n_tensors; i++)
        checkpoint->tensors[i].kind = PHEMA_KIND_FROZEN;
    return PHEMA_OK;
}

enum phema_status frozen_read(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    const char *name = phema_checkpoint_metadatum(checkpoint, PHEMA_FROZEN_FILE);
    enum phema_status status = name ? read_frozen(checkpoint, name, err) : PHEMA_OK;
    struct phema_name_buffer shown;
    if (status == PHEMA_ERR_FILE) /* the snapshot is not damaged itself */
        status = PHEMA_ERR_INPUTS;
    return status ? phema_fail_in(err, status,
                                  "its frozen tensors are in '%s', which has to lie beside it",
                                  phema_name_show(&shown, name))
                  : PHEMA_OK;
}
