/* filesystem.h - what a file's filesystem is, by the number that statfs(2) tells; how Lustre divides
 * a file among its servers. */
#ifndef PHEMA_FILESYSTEM_H
#define PHEMA_FILESYSTEM_H

#include "phema/span.h"
#include "phema/strbuf.h"

/* The name of the file's network filesystem ("NFS"). NULL: local, or unknown. */
const char *phema_network_filesystem(const char *path);

/* Whether the file is on ext4, XFS, Btrfs, tmpfs, ZFS or F2FS. Only these may be read by io_uring,
 * which continues a read that ends before the end of the file. On FUSE it then moves the buffer, and
 * not the offset in the file (seen with Linux 6.18): other bytes arrive, without an error. False for
 * an overlay: a container does not show on which filesystems its layers lie. */
bool phema_filesystem_is_local(int descriptor);

/* Bytes that are free for this user where the path lies, or would lie: it need not exist, nor its
 * directory. false: unknown. */
bool phema_filesystem_free(uint64_t *out, const char *path);

/* ---- Stripes ---- */

#define PHEMA_STRIPES_ALL UINT16_MAX /* one on each server */

struct phema_stripes {
    bool is_understood;    /* else nothing else is known */
    unsigned n_components; /* ranges of the file with layouts of their own; 1: one layout */
    /* of the component of most stripes */
    unsigned n;          /* or PHEMA_STRIPES_ALL; 0: as the file system's default */
    uint32_t size_bytes; /* of a stripe; 0: as the file system's default */
};

/* Reads the extended attribute lustre.lov; false: the file or directory has none. */
bool phema_stripes_read(struct phema_stripes *out, const char *path);

/* Decodes such an attribute: lov_user_md v1, v3, and composites of these. Any bytes are
 * accepted. */
struct phema_stripes phema_stripes_decode(struct phema_span attribute);

/* "8 stripes of 4.00 MiB" */
void phema_stripes_format(struct phema_strbuf *out, const struct phema_stripes *stripes);

#endif
