/* inspect.h - sums over the tensors of a checkpoint or a series, by dtype, component and rule; tied
 * tensors. */
#ifndef CLI_INSPECT_INSPECT_H
#define CLI_INSPECT_INSPECT_H

#include "inspect/times.h"
#include "phema/arena.h"
#include "phema/json.h"
#include "phema/series.h"

struct inspect_total {
    const char *label; /* dtype, prefix of names, or reason; borrowed, label_size bytes of it */
    size_t label_size;
    enum inspect_rule { INSPECT_AVERAGE, INSPECT_COPY, INSPECT_LEFT_OUT } rule;
    size_t first; /* tensor */
    uint64_t n_tensors, n_elems, size_bytes;
    uint64_t n_buffer_elems; /* of n_elems, where the file says so */
};

struct inspect_totals {
    struct inspect_total *items;
    size_t n;
};

struct inspect_summary {
    const struct phema_tensor *tensors; /* [n_tensors] borrowed, or in the arena */
    size_t n_tensors;
    const struct phema_series *series; /* borrowed; NULL: synth cannot use it as a snapshot */
    const char *refusal;               /* why not; borrowed */
    struct inspect_totals dtypes;      /* from the widest */
    struct inspect_totals components;  /* in the order of the file */
    struct inspect_totals rules;
    bool knows_kinds; /* the file distinguishes parameters and buffers */
    size_t *ties;     /* [n_ties] indices of tensors that share storage, group by group */
    size_t *tie_ends; /* [n_groups] where each group ends in ties */
    size_t n_ties, n_groups;
    struct phema_arena arena;
};

/* totals.c. series: NULL when the rules of synth are not known. The tensors are those of the
 * series, unless it is of one checkpoint (series->became). */
PHEMA_FALLIBLE inspect_summarise(struct inspect_summary *out, const struct phema_tensor *tensors,
                                 size_t n, const struct phema_series *series,
                                 struct phema_error *err);
/* The same of the tensors of a series, which the summary then owns. */
PHEMA_FALLIBLE inspect_summarise_series(struct inspect_summary *out,
                                        const struct phema_series *series, struct phema_error *err);
void inspect_summary_clear(struct inspect_summary *summary);

/* The rule of tensor i in a summary with a series. *reason: NULL for an average. */
enum inspect_rule inspect_rule_of(const struct inspect_summary *summary, size_t i,
                                  const char **reason);

/* ---- print.c ---- */

/* Tables of the sums, with an empty line before each. */
void inspect_write_summary(struct phema_strbuf *out, const struct inspect_summary *summary);

/* The summary is of the checkpoint's tensors, or of the series'. is_inner: one of several operands
 */
void inspect_write_checkpoint(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint,
                              const struct inspect_summary *summary);
void inspect_write_checkpoint_json(struct phema_json_out *out,
                                   const struct phema_checkpoint *checkpoint,
                                   const struct inspect_summary *summary, bool is_inner);
/* lists_all: every snapshot, however many they are */
void inspect_write_series(struct phema_strbuf *out, const struct inspect_summary *summary,
                          const struct inspect_times *times, const struct inspect_errors *errors,
                          bool lists_all);
void inspect_write_series_json(struct phema_json_out *out, const struct inspect_summary *summary,
                               const struct inspect_times *times,
                               const struct inspect_errors *errors, bool is_inner);

#endif
