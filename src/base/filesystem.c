// SPDX-License-Identifier: Apache-2.0
/* filesystem.c - kinds of filesystems: numbers of linux/magic.h and of the filesystems' own sources.
 * The striping of Lustre files, as lustre_user.h describes it. */
#include "phema/filesystem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "phema/path.h"

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

bool phema_filesystem_free(uint64_t *out, const char *path)
{
    struct statfs st;
    char *place = strdup(path);
    while (place && statfs(place, &st) != 0) {
        char *above = phema_path_directory(place);
        bool is_end = !above || strcmp(above, place) == 0;
        free(place);
        place = is_end ? NULL : above;
        if (is_end)
            free(above);
    }
    bool is_known = place && st.f_blocks > 0; /* some network filesystems count none */
    if (is_known)
        *out = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
    free(place);
    return is_known;
}

/* ---- Stripes ---- */

/* The attribute has the byte order of the host: one of another order has no known magic. */

#define ATTRIBUTE_BYTES 65536 /* the kernel's limit of any attribute */

#define MAGIC_V1        0x0BD10BD0U
#define MAGIC_V3        0x0BD30BD0U
#define MAGIC_COMPOSITE 0x0BD60BD0U

/* Fixed parts of the structures, which are packed; objects follow v1 and v3. */
#define V1_BYTES        32
#define V3_BYTES        48 /* v1, and the name of a pool */
#define COMPOSITE_BYTES 32
#define COMPONENT_BYTES 48 /* of an entry after the composite's */

/* Low half of the pattern; flags of the high half leave size and number as they are. */
#define PATTERN_DEFAULT     0x000
#define PATTERN_RAID0       0x001
#define PATTERN_METADATA    0x100 /* data on the metadata server: no stripes */
#define PATTERN_OVERSTRIPED 0x201 /* several stripes on a server */

/* v1 or v3, of a file or of a component of a composite */
static bool decode_plain(struct phema_stripes *out, struct phema_span layout)
{
    if (layout.size < V1_BYTES)
        return false;
    uint32_t magic = phema_load_u32(layout.data);
    unsigned pattern = phema_load_u16(layout.data + 4), n = phema_load_u16(layout.data + 28);
    if (magic != MAGIC_V1 && (magic != MAGIC_V3 || layout.size < V3_BYTES))
        return false;
    out->n_components++;
    if (pattern == PATTERN_METADATA)
        return true;
    if (pattern != PATTERN_DEFAULT && pattern != PATTERN_RAID0 && pattern != PATTERN_OVERSTRIPED)
        return false;
    if (!out->is_understood || n > out->n) {
        out->n = n;
        out->size_bytes = phema_load_u32(layout.data + 24);
    }
    out->is_understood = true;
    return true;
}

static bool decode_composite(struct phema_stripes *out, struct phema_span attribute)
{
    if (attribute.size < COMPOSITE_BYTES)
        return false;
    unsigned n = phema_load_u16(attribute.data + 14);
    for (unsigned i = 0; i < n; i++) {
        struct phema_span entry, layout;
        if (!phema_span_part(&entry, attribute, COMPOSITE_BYTES + (uint64_t)i * COMPONENT_BYTES,
                             COMPONENT_BYTES) ||
            !phema_span_part(&layout, attribute, phema_load_u32(entry.data + 24),
                             phema_load_u32(entry.data + 28)) ||
            !decode_plain(out, layout))
            return false;
    }
    return true;
}

struct phema_stripes phema_stripes_decode(struct phema_span attribute)
{
    struct phema_stripes stripes = {0};
    bool is_composite = attribute.size >= 4 && phema_load_u32(attribute.data) == MAGIC_COMPOSITE;
    bool is_whole =
        is_composite ? decode_composite(&stripes, attribute) : decode_plain(&stripes, attribute);
    return is_whole && stripes.is_understood ? stripes : (struct phema_stripes){0};
}

bool phema_stripes_read(struct phema_stripes *out, const char *path)
{
    uint8_t *attribute = malloc(ATTRIBUTE_BYTES);
    ssize_t size = attribute ? getxattr(path, "lustre.lov", attribute, ATTRIBUTE_BYTES) : -1;
    if (size >= 0)
        *out = phema_stripes_decode((struct phema_span){attribute, (size_t)size});
    free(attribute);
    return size >= 0;
}

void phema_stripes_format(struct phema_strbuf *out, const struct phema_stripes *stripes)
{
    struct phema_name_buffer size;
    if (!stripes->is_understood) {
        phema_strbuf_puts(out, "striped (layout not understood)");
        return;
    }
    if (stripes->n_components > 1)
        phema_strbuf_printf(out, "%u components, at most ", stripes->n_components);
    if (stripes->n == 0)
        phema_strbuf_puts(out, "the default number of stripes");
    else if (stripes->n == PHEMA_STRIPES_ALL)
        phema_strbuf_puts(out, "a stripe on each server");
    else
        phema_strbuf_printf(out, "%u stripe%s", stripes->n, stripes->n == 1 ? "" : "s");
    if (stripes->size_bytes)
        phema_strbuf_printf(out, " of %s", phema_size_format(&size, stripes->size_bytes));
}
