/* filesystem.h - what a file's filesystem is, by the number that statfs(2) tells. */
#ifndef PHEMA_FILESYSTEM_H
#define PHEMA_FILESYSTEM_H

#include <stdbool.h>

/* The name of the file's network filesystem ("NFS"). NULL: local, or unknown. */
const char *phema_network_filesystem(const char *path);

/* Whether io_uring may read the file. True on ext4, XFS, Btrfs, tmpfs, ZFS and F2FS alone.
 * io_uring itself continues a read that ends before the end of the file. On FUSE it then moves the
 * buffer, and not the offset in the file (seen with Linux 6.18): other bytes arrive, without an
 * error. An overlay does not show from inside a container on which filesystems its layers lie. */
bool phema_filesystem_allows_uring(int descriptor);

#endif
