/* options.h - what is asked for, resolved: the kinds of files, the averages that are tracked for
 * them, and which file of which kind there is at what time. */
#ifndef GEN_OPTIONS_H
#define GEN_OPTIONS_H

#include "phema/gen.h"
#include "train.h"

#define GEN_RAW SIZE_MAX /* in the place of an average: the parameters themselves */

/* Files that differ in nothing but their time. */
struct gen_kind {
    struct phema_profile profile; /* its end is that of each file */
    double sigma_rel;             /* power */
    bool is_by_gamma;             /* power: the exponent was given, the width follows */
    bool hides_update_every;      /* power */
    bool hides_profile;           /* what trainers save of their parameters says nothing */
    const char *text;             /* of the profile; NULL: a power function */
    char name[124];               /* in names of files: 0.050, ema2000, raw */
    size_t average;               /* the one for all times, unless the shape has a begin */
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
    struct gen_average *averages; /* betas empty */
    size_t n_averages;
    struct gen_item *items; /* by time, truths after snapshots; in the order of the kinds */
    size_t n_items;
};

/* The options are checked but for their numbers of files, widths and profiles; borrowed.
 * PHEMA_ERR_USAGE, PHEMA_ERR_TARGET as phema_gen; PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE gen_request_init(struct gen_request *request,
                                const struct phema_gen_options *options, struct phema_error *err);
void gen_request_clear(struct gen_request *request); /* takes the half-built */

#endif
