// SPDX-License-Identifier: Apache-2.0
/* part_names.c - names of markers, PATH.part-I-of-N: built, parsed and listed. */
#include "part.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path_names.h"
#include "phema/array.h"
#include "write_error.h"

static const char infix[] = ".part-", of[] = "-of-";

char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts)
{
    char *out = NULL;
    if (asprintf(&out, "%s%s%llu%s%llu", path, infix, (unsigned long long)part, of,
                 (unsigned long long)n_parts) < 0)
        return NULL;
    return out;
}

/* Parses a number from 1 on, without leading zeros. Returns the text after it, or NULL. */
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

/* The ".part-I-of-N" at the end of a name, or NULL. */
static const char *find_suffix(uint64_t *part, uint64_t *n_parts, const char *name)
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
    const char *end = find_suffix(&part, &n_parts, name);
    size_t size = end ? (size_t)(end - name) : 0;
    if (!end || (base && (strlen(base) != size || memcmp(base, name, size) != 0)))
        return PHEMA_OK;
    if (!phema_array_grow(&list->items, capacity, list->n, sizeof(*list->items)))
        return phema_fail_memory(err);
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
    const char *base = path ? path_last_name(path) : NULL;
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

/* ---- Outputs that have parts ---- */

static enum phema_status list_parts(struct part_marker_list *out, const char *path,
                                    struct phema_error *err)
{
    char *directory = path_directory(path);
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
        const char *name = path_last_name(path);
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: parts of it are here, such as %s.part-%llu-of-%llu; publish them "
                            "with posthoc-ema join, or remove %s.partial and all %s.part-*",
                            path, name, (unsigned long long)list.items[0].part,
                            (unsigned long long)list.items[0].n_parts, name, name);
    }
    part_marker_list_clear(&list);
    return status;
}

struct path_list {
    char **items;
    size_t n, capacity;
};

/* Owns path, NULL without memory, in any case. */
static enum phema_status add_path(struct path_list *list, char *path, struct phema_error *err)
{
    if (!path || !phema_array_grow(&list->items, &list->capacity, list->n, sizeof(*list->items))) {
        free(path);
        return phema_fail_memory(err);
    }
    list->items[list->n++] = path;
    return PHEMA_OK;
}

/* Markers are sorted by their output. */
static enum phema_status find_inside(struct path_list *found, const char *directory,
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
        status = add_path(found, path, err);
    }
    part_marker_list_clear(&list);
    return status;
}

PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err)
{
    char *own = path_trim(path);
    if (!own)
        return phema_fail_memory(err);
    struct path_list found = {0};
    struct part_marker_list list = {0};
    enum phema_status status = list_parts(&list, own, err);
    if (!status && list.n)
        status = add_path(&found, strdup(own), err);
    else if (!status)
        status = find_inside(&found, own, err);
    part_marker_list_clear(&list);
    free(own);
    if (status) {
        for (size_t i = 0; i < found.n; i++)
            free(found.items[i]);
        free(found.items);
        return status;
    }
    *out = found.items;
    *n = found.n;
    return PHEMA_OK;
}
