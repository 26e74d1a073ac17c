/* trainings.h - simulated trainings in a directory of the test, and the contents of their files. */
#ifndef TESTS_GEN_TRAININGS_H
#define TESTS_GEN_TRAININGS_H

#include <stdio.h>
#include <stdlib.h>

#include "phema/accumulate.h"
#include "phema/formats.h"
#include "phema/gen.h"
#include "support.h"

static inline char *generate(const char *name, const struct phema_gen_options *options)
{
    struct phema_error err = {0};
    char *directory = support_tmp_path(name);
    assert_ok(phema_gen(directory, options, &err), &err);
    return directory;
}

static inline char *path_of(const char *directory, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    return path;
}

static inline struct phema_checkpoint *open_file(const char *directory, const char *name)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    char *path = path_of(directory, name);
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    free(path);
    return checkpoint;
}

/* All tensors of a file, in its order, as doubles; the caller frees them. */
static inline double *read_values(const char *directory, const char *name, size_t *n)
{
    struct phema_checkpoint *checkpoint = open_file(directory, name);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint);
    double *values = NULL;
    *n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        size_t n_elems = (size_t)tensors[i].n_elems;
        values = realloc(values, (*n + n_elems) * sizeof(*values));
        assert_non_null(values);
        phema_widen(values + *n, tensors[i].dtype, phema_tensor_start(checkpoint, &tensors[i]),
                    n_elems);
        *n += n_elems;
    }
    phema_checkpoint_close(checkpoint);
    return values;
}

#endif
