// SPDX-License-Identifier: Apache-2.0
/* directory_folders.c - folders inside a directory that is written, as trainers keep model and
 * averages side by side. They are made before their files, and removed after them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory.h"
#include "partial.h"
#include "phema/array.h"
#include "phema/cleanup.h"
#include "write_error.h"
#include "writer_internal.h"

bool folders_name_is_valid(const char *name)
{
    size_t depth = 0;
    for (const char *part = name;; part++) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += size;
        if (!*part)
            return depth <= MAX_FOLDER_DEPTH;
        depth++;
    }
}

static bool has_folder(const struct folder_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

/* A folder that a resumed run finds is its own: directory_check_entries has seen it. Owns name. */
static enum phema_status make_folder(struct folder_list *list, char *name, int descriptor,
                                     const char *partial_path, struct phema_error *err)
{
    char *path = NULL;
    if (!phema_array_grow(&list->items, &list->capacity, list->n, sizeof(*list->items)) ||
        asprintf(&path, "%s/%s", partial_path, name) < 0) {
        free(name);
        return writer_fail_memory(err, partial_path);
    }
    struct folder *folder = &list->items[list->n];
    *folder = (struct folder){.name = name};
    enum phema_status status = PHEMA_OK;
    if (mkdirat(descriptor, name, WRITER_PARTIAL_DIRECTORY_MODE) && errno != EEXIST)
        status = writer_fail_errno(err, path, "cannot be made", errno);
    else
        list->n++;
    if (!status)
        status = phema_cleanup_add_partial(&folder->entry, path, true, err);
    else
        free(name);
    free(path);
    return status;
}

PHEMA_FALLIBLE folders_make(struct folder_list *list, int descriptor, const char *partial_path,
                            const char *name, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (const char *slash = strchr(name, '/'); slash && !status; slash = strchr(slash + 1, '/')) {
        char *folder = strndup(name, (size_t)(slash - name));
        if (!folder)
            return writer_fail_memory(err, partial_path);
        if (has_folder(list, folder))
            free(folder);
        else
            status = make_folder(list, folder, descriptor, partial_path, err);
    }
    return status;
}

PHEMA_FALLIBLE folders_sync(const struct folder_list *list, int descriptor,
                            const char *partial_path, struct phema_error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        int folder = directory_open_folder(descriptor, list->items[i].name);
        int result = folder < 0 ? -1 : file_sync(folder), number = errno;
        if (folder >= 0)
            (void)close(folder);
        if (result && number != EINVAL)
            return writer_fail_errno(err, partial_path, "cannot be synced", number);
    }
    return PHEMA_OK;
}

void folders_open_permissions(const struct folder_list *list, int descriptor, mode_t usual_write)
{
    for (size_t i = 0; i < list->n && usual_write; i++) {
        int folder = directory_open_folder(descriptor, list->items[i].name);
        if (folder < 0)
            continue;
        permissions_open_directory(folder, usual_write);
        (void)close(folder);
    }
}

void folders_forget(struct folder_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        phema_cleanup_remove(list->items[i].entry);
        list->items[i].entry = NULL;
    }
}

void folders_remove(const struct folder_list *list, int descriptor)
{
    for (size_t i = list->n; i > 0; i--) /* inner ones were made later */
        (void)unlinkat(descriptor, list->items[i - 1].name, AT_REMOVEDIR);
}

void folders_clear(struct folder_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].name);
    free(list->items);
    *list = (struct folder_list){0};
}
