/* options.h - Resolved options: the kinds of files, the averages tracked for them, and the files of
 * each time. */
#ifndef GEN_OPTIONS_H
#define GEN_OPTIONS_H

#include "phema/gen.h"
#include "train.h"

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
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE gen_request_init(struct gen_request *request,
                                const struct phema_gen_options *options, struct phema_error *err);
void gen_request_clear(struct gen_request *request); /* takes the half-built */

#endif
