/* tensor_table.h - the tensors that take part in a series, the table that all snapshots share, and
 * their locations in each. */
#ifndef SERIES_TENSOR_TABLE_H
#define SERIES_TENSOR_TABLE_H

#include "phema/arena.h"
#include "phema/regex.h"
#include "phema/series.h"
#include "sets.h"

/* ---- tensor_filter.c: --include, --exclude and --key; average or copy ---- */

/* A tensor that the averages hold under another name. */
struct tie {
    struct phema_span name, average; /* in the model */
};

struct tensor_filter {
    const struct phema_tensor_sets *sets; /* of the current file */
    const struct phema_tensor_set *set;   /* of the current snapshot */
    struct tie *ties;                     /* [n_ties] by average, then name; NULL: not looked for */
    size_t n_ties;
    bool takes_attributes; /* tensors outside of any state_dict take part */
    bool keeps_codes;      /* fp8 codes and their scales take part as they are */
    bool keeps_scales;     /* scales take part beside numbers */
    struct phema_regex **includes, **excludes;
    size_t n_includes, n_excludes;
    const struct phema_series *like; /* only its tensors; NULL: all */
    size_t *like_by_name;            /* [like->n_tensors] sorted */
};

/* The index of a name in the series that the tensors are like; SIZE_MAX: it has none. */
size_t tensor_filter_place(const struct tensor_filter *filter, const char *name, size_t size);
/* Sets that series. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE tensor_filter_set_like(struct tensor_filter *filter, const struct phema_series *like,
                                      struct phema_arena *arena, struct phema_error *err);

/* The part of a listed tensor in a snapshot. */
struct tensor_role {
    const char *name; /* in the series; NULL: none */
    size_t size;
    bool is_raw; /* a raw parameter beside averages, or alone */
};

/* PHEMA_ERR_USAGE  an expression meets the limits of the search */
PHEMA_FALLIBLE tensor_filter_role(struct tensor_role *out, const struct tensor_filter *filter,
                                  const struct phema_tensor *tensor, struct phema_error *err);

/* Whether the expression matches the name of a tensor of the current file, or of a place whose
 * tensors are not read.
 * PHEMA_ERR_USAGE  as tensor_filter_role */
PHEMA_FALLIBLE tensor_filter_is_used(bool *out, const struct tensor_filter *filter,
                                     struct phema_regex *const *pattern, struct phema_error *err);

/* Whether the current snapshot takes an entry of the series from a tensor of this role: tensors that
 * are copied come from the raw parameters beside averages. */
bool tensor_filter_takes(const struct tensor_filter *filter, const struct tensor_role *role,
                         const struct phema_series_tensor *entry);

/* The ties of a listed tensor of the current set: [*n], or NULL. --include and --exclude have no
 * part in it. */
const struct tie *tensor_filter_ties(const struct tensor_filter *filter,
                                     const struct phema_tensor *listed, size_t *n);

/* Checks that all tensors of the current set that take part are read, and names all classes that
 * hide some.
 * PHEMA_ERR_FILE  they are not */
PHEMA_FALLIBLE tensor_filter_check_read(const struct tensor_filter *filter, bool is_conversion,
                                        struct phema_error *err);

/* Sets the rule, and the reason of a copy. listed: the tensor with its full name in the file */
void tensor_filter_rule(struct phema_series_tensor *entry, const struct phema_tensor *listed,
                        bool averages_buffers);

/* Whether the name is that of running statistics, of the data that pass a normalisation: they jitter
 * with every batch, as parameters do not. */
bool tensor_is_statistic(const struct phema_tensor *tensor);

/* ---- tensor_locations.c: where a snapshot has the tensors ---- */

struct tensor_table;

struct phema_tensor_location tensor_location_of(const struct phema_tensor *tensor);
/* A listed tensor as the series has it: fp8 codes with a scale become numbers. */
struct phema_tensor tensor_as_read(const struct tensor_table *tensor_table,
                                   const struct phema_tensor *listed);
bool tensor_same_dimensions(const uint64_t *a, const uint64_t *b, unsigned rank);
/* Replaces dimensions by a copy in the arena; false: no memory. */
bool tensor_copy_dimensions(struct phema_arena *arena, const uint64_t **dimensions, unsigned rank);
bool tensor_copy_scaling(struct phema_arena *arena, const struct phema_scaling **scaling);

/* A float dtype whose numbers the wanted one has, too. */
bool dtype_is_narrower(enum phema_dtype stored, enum phema_dtype wanted);

/* Index of a name in the table, SIZE_MAX when it is absent. hint: its index in files that were
 * written alike, SIZE_MAX when unknown. */
size_t tensor_table_find(const struct tensor_table *tensor_table, const char *name, size_t size,
                         size_t hint);

/* The role of a listed tensor and its index in the table; SIZE_MAX: it takes no part, or is absent.
 * Failures as tensor_filter_role */
PHEMA_FALLIBLE tensor_table_role(size_t *index, struct tensor_role *role,
                                 const struct tensor_table *tensor_table,
                                 const struct tensor_filter *filter,
                                 const struct phema_tensor *listed, size_t hint,
                                 struct phema_error *err);

/* Fills in the current locations of a snapshot.
 *   is_alike  out: they are the first snapshot's but for one shift
 * Failures as tensor_table_match */
PHEMA_FALLIBLE tensor_locations_fill(struct tensor_table *tensor_table,
                                     struct phema_snapshot *snapshot, bool *is_alike,
                                     struct phema_error *err);

/* ---- tensor_table.c ---- */

struct tensor_table {
    const struct phema_series_options *options;
    const struct tensor_filter *filter;
    struct phema_series *series; /* its memory holds the table */
    const char *reference; /* label of the first snapshot, whose tensors the table holds, ... */
    const struct phema_checkpoint *checkpoint; /* ... and its file ... */
    const struct phema_tensor_location *first; /* ... [n_tensors] and locations */
    size_t *by_name;                           /* [n_tensors] indices sorted by name */
    bool *is_taken; /* of a trainer's sets: for each tensor that the first file lists */
    /* [n_tensors] of the current snapshot, before they are shared */
    struct phema_tensor_location *locations;
};

/* Makes the table from the first snapshot.
 * PHEMA_ERR_INPUTS    no tensor takes part, or one has a dtype that cannot be averaged
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tensor_table_init(struct tensor_table *tensor_table, struct phema_snapshot *snapshot,
                                 struct phema_error *err);

/* Fills in the locations of a later snapshot, which must have the same tensors.
 * PHEMA_ERR_INPUTS    a mismatch; the message has the tensor, both files and the difference
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tensor_table_match(struct tensor_table *tensor_table,
                                  struct phema_snapshot *snapshot, struct phema_error *err);

/* Relative rms rounding error of a snapshot's averaged tensors, element by element.
 *   locations  [n_tensors] of the snapshot */
double tensor_table_rounding(const struct phema_series *series,
                             const struct phema_tensor_location *locations);

/* Fills in same_as: tensors that share their storage in every snapshot are averaged once. */
PHEMA_FALLIBLE tensor_table_find_tied(struct tensor_table *tensor_table, struct phema_error *err);

/* Order of the indices a and b (size_t) in a table of struct phema_series_tensor: by name, then by
 * index. */
int tensor_names_compare(const void *a, const void *b, void *table);

/* Order in the files: by file, then by offset. */
int tensor_locations_compare(const struct phema_tensor_location *left,
                             const struct phema_tensor_location *right);

/* ---- quantised.c ---- */

/* Fills in series->quantised, codes and the scale that multiplies them, from names and dtypes of
 * all tensors of the first file, whether they take part or not. The table of the first snapshot is
 * complete. */
PHEMA_FALLIBLE quantised_find(const struct tensor_table *tensor_table, struct phema_error *err);

#endif
