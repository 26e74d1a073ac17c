// SPDX-License-Identifier: Apache-2.0
/* checkpoint_packed.c - a checkpoint without its listing, for another process. It opens a file when
 * it first needs one, and then checks that the file is the same. A compressed file is opened at
 * once: its frames say how it can be read. */
#include <stdlib.h>

#include "format.h"
#include "phema/packed.h"

static void pack_signed(struct phema_packer *packer, int64_t *number)
{
    uint64_t bits = (uint64_t)*number;
    phema_pack_u64(packer, &bits);
    *number = (int64_t)bits;
}

static void pack_identity(struct phema_packer *packer, struct phema_file_identity *identity)
{
    phema_pack_u64(packer, &identity->size_bytes);
    pack_signed(packer, &identity->modified_s);
    pack_signed(packer, &identity->modified_ns);
    phema_pack_u64(packer, &identity->head);
    if (identity->size_bytes == 0 || identity->size_bytes > SIZE_MAX / 2)
        packer->is_damaged = true;
}

static enum phema_status pack_file(struct checkpoint_file *file, struct phema_packer *packer,
                                   struct phema_error *err)
{
    bool receives = phema_pack_receives(packer);
    const char *path = receives ? NULL : phema_file_path(file->file);
    struct phema_file_identity identity = {0};
    if (!receives)
        phema_file_identify(&identity, file->file);
    phema_pack_text(packer, &path);
    phema_pack_owned_text(packer, &file->label);
    phema_pack_bool(packer, &file->is_metadata);
    pack_identity(packer, &identity);
    enum phema_status status = phema_pack_check(packer, err);
    if (status || !receives)
        return status;
    return path ? phema_file_expect(&file->file, path, &identity, err)
                : phema_fail(err, PHEMA_BUG, "a file without a path was sent");
}

/* Opens the file of a compressed checkpoint for its frames, in place of the expected one. */
static enum phema_status open_frames(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct phema_checkpoint *open = NULL;
    enum phema_status status = phema_checkpoint_demand(checkpoint, 0, false, err);
    if (status)
        return status;
    status = phema_checkpoint_open(&open, checkpoint->path, NULL, err);
    if (status)
        return status;
    struct checkpoint_file expected = checkpoint->files[0];
    checkpoint->files[0] = open->files[0];
    open->files[0] = expected;
    checkpoint->frames = open->frames;
    open->frames = NULL;
    phema_checkpoint_close(open);
    return checkpoint->frames ? PHEMA_OK
                              : phema_fail(err, PHEMA_ERR_FILE, "%s: is not compressed any more",
                                           checkpoint->path);
}

static enum phema_status pack(struct phema_checkpoint *checkpoint, struct phema_packer *packer,
                              struct phema_error *err)
{
    bool receives = phema_pack_receives(packer);
    const char *name = receives ? NULL : checkpoint->format->info.name;
    size_t n_files = checkpoint->n_files;
    phema_pack_owned_text(packer, &checkpoint->path);
    phema_pack_text(packer, &name);
    bool is_compressed = phema_pack_presence(packer, checkpoint->frames != NULL);
    phema_pack_count(packer, &n_files, 48);
    enum phema_status status = phema_pack_check(packer, err);
    if (!status && receives) {
        checkpoint->format = format_from_name(name ? name : "");
        checkpoint->files = calloc(n_files + 1, sizeof(*checkpoint->files));
        checkpoint->files_capacity = n_files + 1;
        if (!checkpoint->path || !checkpoint->format || (is_compressed && n_files != 1))
            status = phema_fail(err, PHEMA_BUG, "a checkpoint that cannot be was sent");
        else if (!checkpoint->files)
            status = phema_fail_memory(err);
    }
    for (size_t f = 0; f < n_files && !status; f++) {
        checkpoint->n_files = receives ? f + 1 : n_files; /* closed with the checkpoint */
        status = pack_file(&checkpoint->files[f], packer, err);
    }
    return status || !receives || !is_compressed ? status : open_frames(checkpoint, err);
}

PHEMA_FALLIBLE phema_checkpoint_pack(struct phema_checkpoint **checkpoint,
                                     struct phema_packer *packer, struct phema_error *err)
{
    if (!phema_pack_receives(packer))
        return pack(*checkpoint, packer, err);
    struct phema_checkpoint *received = calloc(1, sizeof(*received));
    enum phema_status status = received ? pack(received, packer, err) : phema_fail_memory(err);
    if (status)
        phema_checkpoint_close(received);
    else
        *checkpoint = received;
    return status;
}

PHEMA_FALLIBLE phema_checkpoint_demand(const struct phema_checkpoint *checkpoint, size_t file,
                                       bool keeps_descriptors, struct phema_error *err)
{
    struct phema_file *own = checkpoint->files[file].file;
    enum phema_status status = keeps_descriptors ? phema_file_keep_descriptors(own, err) : PHEMA_OK;
    if (!status)
        status = phema_file_demand(own, err);
    return status ? phema_fail_in(err, status, "%s", phema_file_path(own)) : PHEMA_OK;
}
