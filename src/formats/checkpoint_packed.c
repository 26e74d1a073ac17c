// SPDX-License-Identifier: Apache-2.0
/* checkpoint_packed.c - a checkpoint without its listing, for another process. It opens a file when
 * it first needs one, and then checks that the file is the same. A compressed file is opened at
 * once: its frames say how it can be read. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/packed.h"
#include "zstd/decoder.h"

static void pack_identity(struct phema_strbuf *out, const struct phema_file *file)
{
    struct phema_file_identity identity;
    phema_file_identify(&identity, file);
    phema_pack_u64(out, identity.size_bytes);
    phema_pack_u64(out, (uint64_t)identity.modified_s);
    phema_pack_u64(out, (uint64_t)identity.modified_ns);
    phema_pack_u64(out, identity.head);
}

static struct phema_file_identity unpack_identity(struct phema_unpacker *in)
{
    struct phema_file_identity identity;
    identity.size_bytes = phema_unpack_u64(in);
    identity.modified_s = (int64_t)phema_unpack_u64(in);
    identity.modified_ns = (int64_t)phema_unpack_u64(in);
    identity.head = phema_unpack_u64(in);
    if (identity.size_bytes == 0 || identity.size_bytes > SIZE_MAX / 2)
        in->is_damaged = true;
    return identity;
}

void phema_checkpoint_pack(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint)
{
    phema_pack_text(out, checkpoint->path);
    phema_pack_text(out, checkpoint->format->info.name);
    phema_pack_u64(out, checkpoint->frames != NULL);
    phema_pack_u64(out, checkpoint->n_files);
    for (size_t f = 0; f < checkpoint->n_files; f++) {
        phema_pack_text(out, phema_file_path(checkpoint->files[f].file));
        phema_pack_text(out, checkpoint->files[f].label);
        phema_pack_u64(out, checkpoint->files[f].is_metadata);
        pack_identity(out, checkpoint->files[f].file);
    }
}

static enum phema_status unpack_file(struct phema_checkpoint *checkpoint, struct phema_unpacker *in,
                                     struct phema_error *err)
{
    struct checkpoint_file *file = &checkpoint->files[checkpoint->n_files];
    const char *path = phema_unpack_text(in, NULL);
    char *label = phema_unpack_owned(in, NULL);
    file->is_metadata = phema_unpack_bool(in);
    struct phema_file_identity identity = unpack_identity(in);
    enum phema_status status = phema_unpack_check(in, err);
    if (!status && !path)
        status = phema_fail(err, PHEMA_BUG, "a file without a path was sent");
    if (!status)
        status = phema_file_expect(&file->file, path, &identity, err);
    if (status) {
        free(label);
        return status;
    }
    file->label = label;
    checkpoint->n_files++;
    return PHEMA_OK;
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

static enum phema_status unpack(struct phema_checkpoint *checkpoint, struct phema_unpacker *in,
                                struct phema_error *err)
{
    checkpoint->path = phema_unpack_owned(in, NULL);
    const char *name = phema_unpack_text(in, NULL);
    bool is_compressed = phema_unpack_bool(in);
    size_t n_files = phema_unpack_count(in, 48);
    enum phema_status status = phema_unpack_check(in, err);
    if (status)
        return status;
    checkpoint->format = format_from_name(name ? name : "");
    checkpoint->files = calloc(n_files + 1, sizeof(*checkpoint->files));
    checkpoint->files_capacity = n_files + 1;
    if (!checkpoint->path || !checkpoint->format || (is_compressed && n_files != 1))
        return phema_fail(err, PHEMA_BUG, "a checkpoint that cannot be was sent");
    if (!checkpoint->files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < n_files && !status; f++)
        status = unpack_file(checkpoint, in, err);
    return status || !is_compressed ? status : open_frames(checkpoint, err);
}

PHEMA_FALLIBLE phema_checkpoint_unpack(struct phema_checkpoint **out, struct phema_unpacker *in,
                                       struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    enum phema_status status = checkpoint ? unpack(checkpoint, in, err) : phema_fail_memory(err);
    if (status)
        phema_checkpoint_close(checkpoint);
    else
        *out = checkpoint;
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
