// SPDX-License-Identifier: Apache-2.0
/* filesystem.c - kinds of filesystems. Numbers of linux/magic.h and of the filesystems' own
 * sources. */
#include "phema/filesystem.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "phema/span.h"

struct kind {
    uint32_t magic;
    const char *name;
};

/* May be on another machine. */
static const struct kind remote[] = {
    {0x00006969, "NFS"},        {0x0BD00BD0, "Lustre"}, {0x65735546, "FUSE"},
    {0xFF534D42, "CIFS"},       {0xFE534D42, "SMB"},    {0x0000517B, "SMB"},
    {0x01021997, "9p"},         {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
    {0x00C36400, "Ceph"},       {0x5346414F, "AFS"},    {0x6B414653, "AFS"},
    {0x73757245, "Coda"},       {0x01161970, "GFS2"},   {0x7461636F, "OCFS2"},
    {0x20030528, "OrangeFS"},   {0xAAD7AAEA, "PanFS"},  {0x786F4256, "vboxsf"},
    {0xBACBACBC, "VMware HGFS"}};

static const struct kind local[] = {{0x0000EF53, "ext4"},  {0x58465342, "XFS"},
                                    {0x9123683E, "Btrfs"}, {0x01021994, "tmpfs"},
                                    {0x2FC12FC1, "ZFS"},   {0xF2F52010, "F2FS"}};

static const char *find_name(const struct kind *kinds, size_t n, const struct statfs *st)
{
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)st->f_type == kinds[i].magic)
            return kinds[i].name;
    return NULL;
}

const char *phema_network_filesystem(const char *path)
{
    struct statfs st;
    return statfs(path, &st) ? NULL : find_name(remote, ARRAY_LEN(remote), &st);
}

bool phema_filesystem_is_local(int descriptor)
{
    struct statfs st;
    return fstatfs(descriptor, &st) == 0 && find_name(local, ARRAY_LEN(local), &st);
}
