// SPDX-License-Identifier: Apache-2.0
/* relative.c - files that a checkpoint's first file names: they lie below its directory. Subfolders
 * and symbolic links are normal (caches of downloads are made of links). */
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"

const char *relative_path_fault(const char *name, size_t size)
{
    if (size == 0)
        return "is empty";
    if (memchr(name, '\0', size))
        return "holds a NUL";
    if (name[0] == '/')
        return "is absolute";
    if (memmem(name, size, "://", 3))
        return "is a URL";
    for (size_t start = 0; start <= size;) {
        const char *slash = memchr(name + start, '/', size - start);
        size_t end = slash ? (size_t)(slash - name) : size;
        if (end - start == 2 && name[start] == '.' && name[start + 1] == '.')
            return "leads out of the checkpoint's directory";
        start = end + 1;
    }
    return NULL;
}

enum phema_status checkpoint_add_relative(struct phema_checkpoint *checkpoint, const char *name,
                                          size_t size, struct phema_error *err)
{
    const char *first_path = phema_file_path(phema_checkpoint_file(checkpoint, 0));
    const char *slash = strrchr(first_path, '/');
    size_t directory_size = slash ? (size_t)(slash - first_path) + 1 : 0;
    struct phema_strbuf path = {0};
    phema_strbuf_append(&path, first_path, directory_size);
    phema_strbuf_append(&path, name, size);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status)
        status = checkpoint_add_file(checkpoint, path.data, path.data + directory_size, err);
    phema_strbuf_clear(&path);
    return status;
}
