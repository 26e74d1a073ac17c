// SPDX-License-Identifier: Apache-2.0
/* join_sums.c - what join knows once all parts are done: digests of the data that all have read,
 * and checksums of what several have written. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "write_error.h"
#include "writer_internal.h"

PHEMA_FALLIBLE join_open_file(int *descriptor, const struct phema_writer_join *join, size_t file,
                              struct phema_error *err)
{
    const char *name = join->first.files[file].name;
    *descriptor = join_data(join);
    if (name)
        *descriptor =
            openat(join->descriptor, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    return *descriptor < 0 ? writer_fail_errno(err, join_data_path(join), "cannot be opened", errno)
                           : PHEMA_OK;
}

/* Syncs and closes a file of a directory. The joined one is synced when it is published, and the
 * content of a compressed one is removed. */
static enum phema_status close_file(const struct phema_writer_join *join, int descriptor,
                                    enum phema_status status, struct phema_error *err)
{
    if (descriptor == join_data(join))
        return status;
    if (!status && join->options.syncs && file_sync(descriptor))
        status = writer_fail_errno(err, join->path, "cannot be synced", errno);
    (void)close(descriptor);
    return status;
}

/* ---- Digests ---- */

/* Only digits may be overwritten: the header reserves them for this. */
static enum phema_status check_digits(const struct phema_writer_join *join, int descriptor,
                                      uint64_t offset, struct phema_error *err)
{
    char digits[PHEMA_DIGEST] = "";
    struct phema_hash_sum ignored;
    if (file_read_fully(descriptor, digits, PHEMA_DIGEST - 1, offset) < 0)
        return writer_fail_errno(err, join_data_path(join), "cannot be read", errno);
    if (phema_hash_sum_read(&ignored, digits))
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_OUTPUT,
        "%s: expected 32 hexadecimal digits at byte %llu, as its parts say; remove it "
        "and all %s.part-*, and write all parts again",
        join_data_path(join), (unsigned long long)offset, join->path);
}

PHEMA_FALLIBLE join_check_sums(const struct phema_writer_join *join, struct phema_error *err)
{
    int descriptor = -1;
    if (!join->first.n_sums || join->first.sidecar)
        return PHEMA_OK;
    enum phema_status status = join_open_file(&descriptor, join, join->first.sums_file, err);
    for (size_t k = 0; k < join->first.n_sums && !status; k++)
        status = check_digits(join, descriptor, join->first.sums[k].offset, err);
    if (descriptor >= 0 && descriptor != join_data(join))
        (void)close(descriptor);
    return status;
}

static enum phema_status write_digits(const struct phema_writer_join *join, int descriptor,
                                      struct phema_error *err)
{
    for (size_t k = 0; k < join->first.n_sums; k++) {
        const struct phema_writer_part_sum *sum = &join->first.sums[k];
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &sum->sum);
        if (file_write_fully(descriptor, digits, PHEMA_DIGEST - 1, sum->offset))
            return writer_fail_errno(err, join_data_path(join), "cannot be written", errno);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE join_write_sums(const struct phema_writer_join *join, struct phema_error *err)
{
    int descriptor = -1;
    if (!join->first.n_sums || join->first.sidecar)
        return PHEMA_OK;
    enum phema_status status = join_open_file(&descriptor, join, join->first.sums_file, err);
    return status ? status : close_file(join, descriptor, write_digits(join, descriptor, err), err);
}

/* ---- Checksums ---- */

/* crcs: [n] of one file */
static enum phema_status write_file_crcs(const struct phema_writer_join *join, int descriptor,
                                         const struct phema_writer_part_crc *crcs, size_t n,
                                         struct phema_error *err)
{
    for (size_t k = 0; k < n; k++) {
        uint8_t bytes[4];
        phema_store_u32(bytes, crcs[k].crc);
        for (unsigned x = 0; x < crcs[k].n_places; x++)
            if (file_write_fully(descriptor, bytes, sizeof(bytes), crcs[k].at[x]))
                return writer_fail_errno(err, join_data_path(join), "cannot be written", errno);
    }
    return PHEMA_OK;
}

/* The crcs are sorted by file. */
PHEMA_FALLIBLE join_write_crcs(const struct phema_writer_join *join, struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0, end = 0; k < all->n_crcs && !status; k = end) {
        while (end < all->n_crcs && all->crcs[end].file == all->crcs[k].file)
            end++;
        int descriptor = -1;
        status = join_open_file(&descriptor, join, all->crcs[k].file, err);
        if (!status)
            status =
                close_file(join, descriptor,
                           write_file_crcs(join, descriptor, &all->crcs[k], end - k, err), err);
    }
    return status;
}

/* ---- The sidecar ---- */

/* Writes a sum into the text of the first part, as into a header. */
static enum phema_status put_digits(const struct phema_writer_join *join,
                                    const struct phema_writer_part_sum *sum,
                                    struct phema_error *err)
{
    char digits[PHEMA_DIGEST] = "", *place = join->first.sidecar + sum->offset;
    struct phema_hash_sum ignored;
    memcpy(digits, place, PHEMA_DIGEST - 1);
    if (!phema_hash_sum_read(&ignored, digits))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected 32 hexadecimal digits at byte %llu of the provenance in "
                          "part 1, as its parts say; remove all %s.part-*, and write all parts "
                          "again",
                          join->path, (unsigned long long)sum->offset, join->path);
    phema_hash_sum_show(digits, &sum->sum);
    memcpy(place, digits, PHEMA_DIGEST - 1);
    return PHEMA_OK;
}

PHEMA_FALLIBLE join_open_sidecar(struct phema_writer **out, const struct phema_writer_join *join,
                                 struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    const struct phema_span text = {(const uint8_t *)all->sidecar, all->sidecar_bytes};
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < all->n_sums && !status; k++)
        status = put_digits(join, &all->sums[k], err);
    return status ? status : phema_writer_open_sidecar(out, join->path, text, &join->options, err);
}
