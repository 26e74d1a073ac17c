/* files.h - The files of a simulated training: names, headers, and writers. All writers are open
 * together, since every part of the model is simulated once and goes into all files. */
#ifndef GEN_FILES_H
#define GEN_FILES_H

#include "options.h"
#include "phema/gen.h"
#include "phema/writer.h"

/* ---- The model ---- */

/* The tensors of the simulated model: a few large ones, more small ones, one scalar. */
struct gen_tensor {
    char name[40];
    unsigned rank; /* 0 to 2 */
    uint64_t shape[2];
    uint64_t n_elems;
    double mean, scale;   /* of its elements */
    uint64_t first_param; /* counted over all tensors */
    uint64_t first_run;   /* first run, counted over all tensors */
};

struct gen_model {
    struct gen_tensor *tensors; /* [n + 1]: the last one is empty and holds the totals */
    size_t n;
};

/* n_params in total, n_params >= n > 0. */
PHEMA_FALLIBLE gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                              struct phema_error *err);
void gen_model_clear(struct gen_model *model);

/* ---- Files ---- */

struct gen_file {
    const struct gen_item *item; /* NULL: manifest or table */
    enum phema_dtype dtype;
    uint64_t data_at; /* start of the first tensor's data */
    struct phema_writer *writer;
    bool is_published;
    char *path; /* kept after the writer is gone */
};

struct gen_files {
    struct gen_file *files; /* [n], in the order of the items: by time */
    size_t n;
    size_t n_beside;       /* more files after them: manifest and tables */
    uint64_t *first_elems; /* [tensors] elements before each, in every file */
};

/* Opens every file; after a failure no file is left. The request is borrowed. */
PHEMA_FALLIBLE gen_files_open(struct gen_files *files, const char *directory,
                              const struct phema_gen_options *options,
                              const struct gen_model *model, const struct gen_request *request,
                              struct phema_error *err);

/* Publishes all files, or after a failure removes those already published. */
PHEMA_FALLIBLE gen_files_commit(struct gen_files *files, struct phema_error *err);
void gen_files_clear(struct gen_files *files); /* removes what was not committed */

#endif
