/* files.h - the files of a simulated training: names, headers, and writers that are open together,
 * since every part of the model is simulated once and goes into all of them. */
#ifndef GEN_FILES_H
#define GEN_FILES_H

#include "options.h"
#include "phema/gen.h"
#include "phema/writer.h"
#include "tensors.h"

struct gen_file {
    const struct gen_item *item; /* NULL: of what stands beside the snapshots */
    enum phema_dtype dtype;
    uint64_t data_at; /* where the first tensor's data begin */
    struct phema_writer *writer;
    bool is_published;
    char *path; /* kept after the writer is gone */
};

struct gen_files {
    struct gen_file *files; /* [n], in the order of the items: by time */
    size_t n;
    size_t n_beside;       /* more files behind them: manifest.h */
    uint64_t *first_elems; /* [tensors] elements before each in every file: all have one order */
};

/* Opens every file; on failure none is left. The request is borrowed. */
PHEMA_FALLIBLE gen_files_open(struct gen_files *files, const char *directory,
                              const struct phema_gen_options *options,
                              const struct gen_model *model, const struct gen_request *request,
                              struct phema_error *err);

/* Publishes all or, as far as can be, none. */
PHEMA_FALLIBLE gen_files_commit(struct gen_files *files, struct phema_error *err);
void gen_files_clear(struct gen_files *files); /* removes what was not committed */

#endif
