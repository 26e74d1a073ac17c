// SPDX-License-Identifier: Apache-2.0
/* claims.c - paths that a run reads or writes: no output may replace an input or another output. */
#include "phema/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/array.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* Suffixes of a file under its final and its partial name. */
static const char *const ends[] = {"", ".partial"};

struct identity {
    bool is_known;
    dev_t device;
    ino_t inode;
};

/* A path, the file that it leads to, and the directory that holds its name. */
struct place {
    char *path;        /* NULL for an input */
    const char *input; /* "one of the snapshots"; NULL for an output */
    struct identity file, directory;
};

struct phema_claims {
    struct place *places;
    size_t n, capacity;
};

/* ---- Places ---- */

static struct identity identify(const char *path)
{
    struct stat st;
    if (!path || stat(path, &st))
        return (struct identity){0};
    return (struct identity){true, st.st_dev, st.st_ino};
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return a->is_known && b->is_known && a->device == b->device && a->inode == b->inode;
}

static enum phema_status find_place(struct place *out, const char *path, const char *end,
                                    struct phema_error *err)
{
    struct place place = {0};
    char *trimmed = phema_path_trim(path);
    int size = trimmed ? asprintf(&place.path, "%s%s", trimmed, end) : -1;
    free(trimmed);
    if (size < 0)
        return phema_fail_memory(err);
    char *directory = phema_path_directory(place.path);
    if (!directory) {
        free(place.path);
        return phema_fail_memory(err);
    }
    place.file = identify(place.path);
    place.directory = identify(directory);
    free(directory);
    *out = place;
    return PHEMA_OK;
}

/* true for one file, for one name in one directory, or for equal paths where the directory does not
 * exist. */
static bool are_one(const struct place *a, const struct place *b)
{
    if (is_same(&a->file, &b->file))
        return true;
    if (is_same(&a->directory, &b->directory))
        return strcmp(phema_path_last_name(a->path), phema_path_last_name(b->path)) == 0;
    return strcmp(a->path, b->path) == 0;
}

/* ---- The list ---- */

PHEMA_FALLIBLE phema_claims_new(struct phema_claims **out, struct phema_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

void phema_claims_free(struct phema_claims *claims)
{
    if (!claims)
        return;
    for (size_t i = 0; i < claims->n; i++)
        free(claims->places[i].path);
    free(claims->places);
    free(claims);
}

/* input: as of a place */
static enum phema_status add(struct phema_claims *claims, const char *path, const char *end,
                             const char *input, struct phema_error *err)
{
    if (!phema_array_grow(&claims->places, &claims->capacity, claims->n, sizeof(*claims->places)))
        return phema_fail_memory(err);
    struct place *place = &claims->places[claims->n];
    enum phema_status status = find_place(place, path, end, err);
    if (status)
        return status;
    claims->n++;
    place->input = input;
    if (input) { /* there may be thousands of snapshots */
        free(place->path);
        place->path = NULL;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_claims_add_input(struct phema_claims *claims, const char *path,
                                      const char *what, struct phema_error *err)
{
    return claims ? add(claims, path, "", what, err) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_claims_add_output(struct phema_claims *claims, const char *path,
                                       struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t e = 0; e < ARRAY_LEN(ends) && !status; e++)
        status = add(claims, path, ends[e], NULL, err);
    return status;
}

/* ---- Checks ---- */

/* Suggests a new name in the current directory, which has the same extension. */
static enum phema_status fail_input(const struct place *place, const struct place *input,
                                    struct phema_error *err)
{
    const char *base = phema_path_last_name(place->path), *end = strrchr(base, '.');
    struct phema_strbuf name = {0};
    enum phema_status status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is %s; choose another name",
                                          place->path, input->input);
    phema_strbuf_printf(&name, "out-%s", base);
    if (end && strcmp(end, ".partial") != 0 && !name.is_failed)
        (void)phema_suggest(err, status, PHEMA_SET_OUT, name.data);
    phema_strbuf_clear(&name);
    return status;
}

static enum phema_status check_input(const struct place *input, const struct place *place,
                                     struct phema_error *err)
{
    if (is_same(&input->file, &place->file))
        return fail_input(place, input, err);
    if (is_same(&input->directory, &place->file))
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: holds %s; choose another name", place->path,
                          input->input);
    return PHEMA_OK;
}

static enum phema_status check_place(const struct phema_claims *claims, const struct place *place,
                                     bool is_new, struct phema_error *err)
{
    for (size_t i = 0; i < claims->n; i++) {
        const struct place *other = &claims->places[i];
        if (other->input) {
            enum phema_status status = check_input(other, place, err);
            if (status)
                return status;
        } else if (is_new && are_one(other, place)) {
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: is another file that this run writes (%s); choose another name",
                              place->path, other->path);
        }
    }
    return PHEMA_OK;
}

static enum phema_status check(const struct phema_claims *claims, const char *path, bool is_new,
                               struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t e = 0; claims && e < ARRAY_LEN(ends) && !status; e++) {
        struct place place = {0};
        status = find_place(&place, path, ends[e], err);
        if (!status)
            status = check_place(claims, &place, is_new, err);
        free(place.path);
    }
    return status;
}

PHEMA_FALLIBLE phema_claims_check_inputs(const struct phema_claims *claims, const char *path,
                                         struct phema_error *err)
{
    return check(claims, path, false, err);
}

PHEMA_FALLIBLE phema_claims_check(const struct phema_claims *claims, const char *path,
                                  struct phema_error *err)
{
    return check(claims, path, true, err);
}
