/* plot.h - pictures of averages, of how good they are, and of what a run took: as SVG, PNG or PDF,
 * or the numbers that are drawn as CSV. A picture is 800 units wide. What is given is copied or
 * drawn at once: nothing is borrowed beyond the call. No globals; cairo is behind PNG and PDF. */
#ifndef PHEMA_PLOT_H
#define PHEMA_PLOT_H

#include "phema/error.h"
#include "phema/profile.h"
#include "phema/strbuf.h"

struct phema_picture;

enum phema_picture_format {
    PHEMA_PICTURE_SVG, /* the same bytes everywhere; texts are texts */
    PHEMA_PICTURE_PNG, /* two pixels a unit */
    PHEMA_PICTURE_PDF,
    PHEMA_PICTURE_CSV /* panel,series,x,y: all that is drawn; numbers read back the same */
};

/* By what the path ends in. PHEMA_ERR_USAGE names what is known. */
PHEMA_FALLIBLE phema_picture_format(enum phema_picture_format *out, const char *path,
                                    struct phema_error *err);

/* The snapshots of one training, by time. */
struct phema_plot_series {
    const char *title;                     /* of the picture */
    const char *unit;                      /* what times count: "steps" */
    const struct phema_profile *snapshots; /* [n]; where they are not known, t alone is */
    const char *const *kinds; /* [n] "sigma_rel 0.05"; those of one text share a colour */
    size_t n;
};

/* What is made of them. */
struct phema_plot_target {
    const char *title; /* "sigma_rel 0.1 at 4096" */
    const char *note;  /* how good it is */
    struct phema_mix mix;
    const double *weights; /* [series->n] */
};

/* More panels than that are no picture any more. */
#define PHEMA_PLOT_MAX_TARGETS 8

/* What snapshots, targets and their sums weigh, over the training; and what is missing.
 * PHEMA_ERR_USAGE  too many targets
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_plot_profiles(struct phema_picture **out,
                                   const struct phema_plot_series *series,
                                   const struct phema_plot_target *targets, size_t m,
                                   struct phema_error *err);

/* A stem for each weight. Profiles may be unknown. Fails as above. */
PHEMA_FALLIBLE phema_plot_weights(struct phema_picture **out,
                                  const struct phema_plot_series *series,
                                  const struct phema_plot_target *targets, size_t m,
                                  struct phema_error *err);

/* How good averages of one series are, by their width. */
struct phema_plot_error {
    double sigma_rel, predicted, rounding, profile_error;
    bool is_marked; /* one that was asked for */
};
struct phema_plot_errors {
    const char *title, *note;
    const struct phema_plot_error *widths; /* [n] ascending */
    size_t n;
    const double *inputs; /* [n_inputs] widths of the snapshots */
    size_t n_inputs;
};
PHEMA_FALLIBLE phema_plot_errors(struct phema_picture **out, const struct phema_plot_errors *errors,
                                 struct phema_error *err);

#define PHEMA_PLOT_MAX_STAGES 64

/* Memory by stage, from the lines of JSON that --profile-memory writes.
 *   cap_bytes  a limit to be drawn, 0 for none
 * PHEMA_ERR_FILE  they are none; names the line */
PHEMA_FALLIBLE phema_plot_memory(struct phema_picture **out, const char *title,
                                 struct phema_span lines, uint64_t cap_bytes,
                                 struct phema_error *err);

#define PHEMA_PLOT_MAX_SCORES 100000

struct phema_plot_sweep {
    const char *title;
    struct phema_span csv; /* sigma_rel,score by name in a first line, or these two columns */
    bool maximizes;
};

/* Scores by width.
 *   n_left_out  out: lines whose score is empty or not finite
 * PHEMA_ERR_FILE  it is no such CSV, has too many lines or no score; names the line */
PHEMA_FALLIBLE phema_plot_sweep(struct phema_picture **out, size_t *n_left_out,
                                const struct phema_plot_sweep *sweep, struct phema_error *err);

/* Appends the file's bytes. PHEMA_ERR_RESOURCE: no memory, or cairo says what failed */
PHEMA_FALLIBLE phema_picture_write(struct phema_strbuf *out, const struct phema_picture *picture,
                                   enum phema_picture_format format, struct phema_error *err);
void phema_picture_free(struct phema_picture *picture); /* takes NULL */

#endif
