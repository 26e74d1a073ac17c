// SPDX-License-Identifier: Apache-2.0
/* part_names.c - which parts of which outputs there are: names like PATH.part-I-of-N. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"
#include "partial.h"

static const char infix[] = ".part-", of[] = "-of-";

char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts)
{
    char *out = NULL;
    if (asprintf(&out, "%s%s%llu%s%llu", path, infix, (unsigned long long)part, of,
                 (unsigned long long)n_parts) < 0)
        return NULL;
    return out;
}

char *part_marker_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* A number as we write it, from 1 on; what follows it, or NULL. */
static const char *read_number(uint64_t *out, const char *text)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value <= PHEMA_MAX_PARTS; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == text || *text == '0' || value > PHEMA_MAX_PARTS)
        return NULL;
    *out = value;
    return at;
}

/* Where ".part-I-of-N" begins in a name that ends so, or NULL. */
static const char *find_end(uint64_t *part, uint64_t *n_parts, const char *name)
{
    const char *found = NULL;
    for (const char *at = name; (at = strstr(at, infix)); at++)
        found = at;
    const char *after = found ? read_number(part, found + strlen(infix)) : NULL;
    if (!after || strncmp(after, of, strlen(of)) != 0)
        return NULL;
    after = read_number(n_parts, after + strlen(of));
    return after && !*after && found != name && *part <= *n_parts ? found : NULL;
}

static int compare_names(const void *a, const void *b)
{
    const struct part_marker_name *left = a, *right = b;
    int order = strcmp(left->base, right->base);
    if (order)
        return order;
    if (left->n_parts != right->n_parts)
        return left->n_parts < right->n_parts ? -1 : 1;
    return (left->part > right->part) - (left->part < right->part);
}

/* base: NULL for any */
static enum phema_status add_name(struct part_marker_list *list, size_t *capacity, const char *name,
                                  const char *base, struct phema_error *err)
{
    uint64_t part = 0, n_parts = 0;
    const char *end = find_end(&part, &n_parts, name);
    size_t size = end ? (size_t)(end - name) : 0;
    if (!end || (base && (strlen(base) != size || memcmp(base, name, size) != 0)))
        return PHEMA_OK;
    if (list->n == *capacity) {
        size_t larger = *capacity ? 2 * *capacity : 16;
        struct part_marker_name *items = realloc(list->items, larger * sizeof(*items));
        if (!items)
            return phema_fail_memory(err);
        list->items = items;
        *capacity = larger;
    }
    struct part_marker_name *item = &list->items[list->n];
    *item = (struct part_marker_name){strndup(name, size), part, n_parts};
    if (!item->base)
        return phema_fail_memory(err);
    list->n++;
    return PHEMA_OK;
}

PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *directory,
                                     const char *path, struct phema_error *err)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *base = slash ? slash + 1 : path;
    struct part_marker_list list = {0};
    size_t capacity = 0;
    DIR *stream = opendir(directory);
    if (!stream && errno != ENOENT && errno != ENOTDIR)
        return writer_fail_errno(err, directory, "cannot be listed", errno);
    enum phema_status status = PHEMA_OK;
    while (stream && !status) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry) {
            if (errno)
                status = writer_fail_errno(err, directory, "cannot be listed", errno);
            break;
        }
        status = add_name(&list, &capacity, entry->d_name, base, err);
    }
    if (stream)
        (void)closedir(stream);
    if (status) {
        part_marker_list_clear(&list);
        return status;
    }
    if (list.n)
        qsort(list.items, list.n, sizeof(*list.items), compare_names);
    *out = list;
    return PHEMA_OK;
}

void part_marker_list_clear(struct part_marker_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].base);
    free(list->items);
    *list = (struct part_marker_list){0};
}

/* ---- Which outputs there are ---- */

char *part_marker_base_of(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return strndup(path, size);
}

static enum phema_status list_parts(struct part_marker_list *out, const char *path,
                                    struct phema_error *err)
{
    char *directory = part_marker_directory_of(path);
    if (!directory)
        return phema_fail_memory(err);
    enum phema_status status = part_marker_list_make(out, directory, path, err);
    free(directory);
    return status;
}

PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = list_parts(&list, path, err);
    if (!status && list.n) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: parts of it are here, such as %s.part-%llu-of-%llu; publish them "
                            "with posthoc-ema join, or remove %s.partial and all %s.part-*",
                            path, name, (unsigned long long)list.items[0].part,
                            (unsigned long long)list.items[0].n_parts, name, name);
    }
    part_marker_list_clear(&list);
    return status;
}

static enum phema_status add_path(char ***out, size_t *n, char *path, struct phema_error *err)
{
    char **larger = path ? realloc(*out, (*n + 1) * sizeof(*larger)) : NULL;
    if (!larger) {
        free(path);
        return phema_fail_memory(err);
    }
    *out = larger;
    larger[(*n)++] = path;
    return PHEMA_OK;
}

/* Markers are sorted by what they belong to. */
static enum phema_status find_inside(char ***out, size_t *n, const char *directory,
                                     struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, directory, NULL, err);
    for (size_t i = 0; i < list.n && !status; i++) {
        if (i && strcmp(list.items[i].base, list.items[i - 1].base) == 0)
            continue;
        char *path = NULL;
        bool is_root = strcmp(directory, "/") == 0;
        if (asprintf(&path, "%s%s%s", directory, is_root ? "" : "/", list.items[i].base) < 0)
            path = NULL;
        status = add_path(out, n, path, err);
    }
    part_marker_list_clear(&list);
    return status;
}

PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err)
{
    char *own = part_marker_base_of(path);
    if (!own)
        return phema_fail_memory(err);
    char **paths = NULL;
    size_t n_paths = 0;
    struct part_marker_list list = {0};
    enum phema_status status = list_parts(&list, own, err);
    if (!status && list.n)
        status = add_path(&paths, &n_paths, strdup(own), err);
    else if (!status)
        status = find_inside(&paths, &n_paths, own, err);
    part_marker_list_clear(&list);
    free(own);
    if (status) {
        for (size_t i = 0; i < n_paths; i++)
            free(paths[i]);
        free(paths);
        return status;
    }
    *out = paths;
    *n = n_paths;
    return PHEMA_OK;
}
