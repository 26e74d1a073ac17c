/* filesystem.h - what a file's filesystem is, by the number that statfs(2) tells. */
#ifndef PHEMA_FILESYSTEM_H
#define PHEMA_FILESYSTEM_H

#include <stdbool.h>

/* The name of the file's network filesystem ("NFS"). NULL: local, or unknown. */
const char *phema_network_filesystem(const char *path);

/* Whether the file is on ext4, XFS, Btrfs, tmpfs, ZFS or F2FS. Only these may be read by io_uring,
 * which continues a read that ends before the end of the file. On FUSE it then moves the buffer, and
 * not the offset in the file (seen with Linux 6.18): other bytes arrive, without an error. False for
 * an overlay: a container does not show on which filesystems its layers lie. */
bool phema_filesystem_is_local(int descriptor);

#endif
