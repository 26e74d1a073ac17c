/* files.h - The files of a simulated training: the kinds that are asked for and the averages tracked
 * for them; names, headers, and writers. All writers are open together, since every part of the model
 * is simulated once and goes into all files. */
#ifndef GEN_FILES_H
#define GEN_FILES_H

#include "phema/gen.h"
#include "phema/writer.h"
#include "train.h"

/* ---- request.c ---- */

#define GEN_RAW SIZE_MAX /* instead of an average: the parameters themselves */

/* Files that differ only in their time. */
struct gen_kind {
    struct phema_profile profile; /* its end is that of each file */
    double sigma_rel;             /* power */
    bool is_by_gamma;             /* power: the exponent was given, the width follows */
    bool hides_update_every;      /* power */
    bool hides_profile;           /* raw parameters: files without a profile */
    const char *text;             /* of the profile; NULL: a power function */
    char name[124];               /* in names of files: 0.050, ema2000, raw */
    size_t average;               /* for all times, unless the shape has a beginning */
};

struct gen_item {
    uint64_t time;
    const struct gen_kind *kind;
    size_t average; /* index in averages, or GEN_RAW */
    bool is_truth;
};

struct gen_request {
    struct gen_kind *kinds; /* [n_snapshot_kinds + n_truth_kinds] */
    size_t n_snapshot_kinds, n_truth_kinds;
    struct gen_average *averages; /* without betas */
    size_t n_averages;
    struct gen_item *items; /* by time, truths after snapshots; in the order of the kinds */
    size_t n_items;
    struct gen_stop *stops; /* [n_stops] ascending: times of items, and resets before the last */
    size_t n_stops;
};

/* The options are borrowed; their ranges are checked before, but not the numbers of files, widths
 * and profiles.
 * PHEMA_ERR_USAGE     as phema_gen
 * PHEMA_ERR_TARGET    as phema_gen
 * PHEMA_ERR_RESOURCE  no memory; the request has to be cleared then, too */
PHEMA_FALLIBLE gen_request_init(struct gen_request *request,
                                const struct phema_gen_options *options, struct phema_error *err);
void gen_request_clear(struct gen_request *request);

/* ---- files.c: the model ---- */

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

/* Opens every file. The request is borrowed. The files have to be cleared after a failure as well. */
PHEMA_FALLIBLE gen_files_open(struct gen_files *files, const char *directory,
                              const struct phema_gen_options *options,
                              const struct gen_model *model, const struct gen_request *request,
                              struct phema_error *err);

/* Publishes all files, or after a failure removes those already published. */
PHEMA_FALLIBLE gen_files_commit(struct gen_files *files, struct phema_error *err);
void gen_files_clear(struct gen_files *files); /* removes what was not committed */

#endif
