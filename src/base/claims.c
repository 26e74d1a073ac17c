// SPDX-License-Identifier: Apache-2.0
/* claims.c - paths that a run reads or writes: no output may replace an input or another output. */
#include "phema/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/array.h"
#include "phema/span.h"

/* Suffixes of a file under its final and its partial name. */
static const char *const ends[] = {"", ".partial"};

struct identity {
    bool is_known;
    dev_t device;
    ino_t inode;
};

/* A path, the file that it leads to, and the directory that holds its name. */
struct place {
    char *path;
    struct identity file, directory;
};

struct input {
    struct place place;
    const char *what;
};

struct phema_claims {
    struct input *inputs;
    size_t n_inputs, inputs_capacity;
    struct place *outputs;
    size_t n_outputs, outputs_capacity;
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

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void clear_place(struct place *place)
{
    free(place->path);
    *place = (struct place){0};
}

static enum phema_status find_place(struct place *out, const char *path, const char *end,
                                    struct phema_error *err)
{
    struct place place = {0};
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    if (asprintf(&place.path, "%.*s%s", (int)size, path, end) < 0)
        return phema_fail_memory(err);
    size = (size_t)(name_in(place.path) - place.path);
    char *directory = size ? strndup(place.path, size) : strdup(".");
    if (!directory) {
        clear_place(&place);
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
        return strcmp(name_in(a->path), name_in(b->path)) == 0;
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
    for (size_t i = 0; i < claims->n_inputs; i++)
        clear_place(&claims->inputs[i].place);
    for (size_t i = 0; i < claims->n_outputs; i++)
        clear_place(&claims->outputs[i]);
    free(claims->inputs);
    free(claims->outputs);
    free(claims);
}

PHEMA_FALLIBLE phema_claims_add_input(struct phema_claims *claims, const char *path,
                                      const char *what, struct phema_error *err)
{
    struct input input = {.what = what};
    if (!claims)
        return PHEMA_OK;
    if (!phema_array_grow(&claims->inputs, &claims->inputs_capacity, claims->n_inputs,
                          sizeof(input)))
        return phema_fail_memory(err);
    enum phema_status status = find_place(&input.place, path, "", err);
    if (status)
        return status;
    free(input.place.path); /* there may be thousands of snapshots */
    input.place.path = NULL;
    claims->inputs[claims->n_inputs++] = input;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_claims_add_output(struct phema_claims *claims, const char *path,
                                       struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t e = 0; e < ARRAY_LEN(ends) && !status; e++) {
        if (!phema_array_grow(&claims->outputs, &claims->outputs_capacity, claims->n_outputs,
                              sizeof(*claims->outputs)))
            return phema_fail_memory(err);
        status = find_place(&claims->outputs[claims->n_outputs], path, ends[e], err);
        claims->n_outputs += !status;
    }
    return status;
}

/* ---- Checks ---- */

static enum phema_status check_inputs(const struct phema_claims *claims, const struct place *place,
                                      struct phema_error *err)
{
    for (size_t i = 0; i < claims->n_inputs; i++) {
        const struct input *input = &claims->inputs[i];
        if (is_same(&input->place.file, &place->file))
            return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is %s; choose another name", place->path,
                              input->what);
        if (is_same(&input->place.directory, &place->file))
            return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: holds %s; choose another name",
                              place->path, input->what);
    }
    return PHEMA_OK;
}

static enum phema_status check_outputs(const struct phema_claims *claims, const struct place *place,
                                       struct phema_error *err)
{
    for (size_t i = 0; i < claims->n_outputs; i++)
        if (are_one(&claims->outputs[i], place))
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: is another file that this run writes (%s); choose another name",
                              place->path, claims->outputs[i].path);
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
            status = check_inputs(claims, &place, err);
        if (!status && is_new)
            status = check_outputs(claims, &place, err);
        clear_place(&place);
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
