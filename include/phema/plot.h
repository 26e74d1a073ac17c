/* plot.h - pictures of averages, of their errors and of a run's memory, as SVG, PNG or PDF, or the
 * drawn numbers as CSV. A picture is 800 units wide, or 380 for a phone. Functions copy or draw
 * their arguments: nothing is borrowed beyond the call. No globals. PNG and PDF need cairo. */
#ifndef PHEMA_PLOT_H
#define PHEMA_PLOT_H

#include "phema/error.h"
#include "phema/profile.h"
#include "phema/strbuf.h"

struct phema_picture;

enum phema_picture_format {
    PHEMA_PICTURE_SVG, /* the same bytes on every machine; texts stay texts */
    PHEMA_PICTURE_PNG, /* two pixels per unit */
    PHEMA_PICTURE_PDF,
    PHEMA_PICTURE_CSV /* panel,series,x,y of everything drawn; numbers are exact */
};

/* The format for the path's extension. PHEMA_ERR_USAGE: unknown extension; names the known ones. */
PHEMA_FALLIBLE phema_picture_format(enum phema_picture_format *out, const char *path,
                                    struct phema_error *err);

/* The snapshots of one training, by time. */
struct phema_plot_series {
    const char *title;                     /* of the picture */
    const char *unit;                      /* of times: "steps" */
    const struct phema_profile *snapshots; /* [n]; of an unknown profile only t is set */
    const char *const *kinds;              /* [n] "sigma_rel 0.05"; equal texts share a colour */
    size_t n;
};

/* One average of the series. */
struct phema_plot_target {
    const char *title; /* "sigma_rel 0.1 at 4096" */
    const char *note;  /* its quality, as a sentence */
    struct phema_mix mix;
    const double *weights; /* [series->n] */
};

/* More panels would make an unreadable picture. */
#define PHEMA_PLOT_MAX_TARGETS 8

/* Densities over the training: of snapshots, of targets and of the weighted sums; with residuals.
 * PHEMA_ERR_USAGE     too many targets
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_plot_profiles(struct phema_picture **out,
                                   const struct phema_plot_series *series,
                                   const struct phema_plot_target *targets, size_t m,
                                   struct phema_error *err);

/* A stem for each weight. Profiles may be unknown. Fails like phema_plot_profiles. */
PHEMA_FALLIBLE phema_plot_weights(struct phema_picture **out,
                                  const struct phema_plot_series *series,
                                  const struct phema_plot_target *targets, size_t m,
                                  struct phema_error *err);

/* Errors of averages of one series, by width. */
struct phema_plot_error {
    double sigma_rel;
    double predicted, rounding, paper_weights; /* of |theta|; NaN: unknown */
    double profile_error;                      /* NaN: not drawn */
    bool is_marked;                            /* a target of the user */
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
 *   cap_bytes  a limit to draw, or 0
 * PHEMA_ERR_FILE  a line is invalid; names the line */
PHEMA_FALLIBLE phema_plot_memory(struct phema_picture **out, const char *title,
                                 struct phema_span lines, uint64_t cap_bytes,
                                 struct phema_error *err);

#define PHEMA_PLOT_MAX_SCORES 100000

struct phema_plot_sweep {
    const char *title;
    struct phema_span
        csv;           /* columns sigma_rel and score, named in the first line, or just the two */
    const char *label; /* what a score is, at its axis; NULL: "score" */
    bool maximizes;
};

struct phema_sweep_facts {
    size_t n_left_out;                 /* lines whose score is empty or not finite */
    double best_sigma_rel, best_score; /* sigma_rel: NaN where the newest snapshot scores best */
    double best_time;                  /* NaN: there is one curve */
};

/* Scores by width.
 * PHEMA_ERR_FILE  the CSV is invalid, has too many lines or no score; names the line */
PHEMA_FALLIBLE phema_plot_sweep(struct phema_picture **out, struct phema_sweep_facts *facts,
                                const struct phema_plot_sweep *sweep, struct phema_error *err);

/* Errors of the choices of a design by disk, and the times and widths of the chosen one, from the
 * JSON of the verb design or its file. PHEMA_ERR_FILE: not such a JSON */
PHEMA_FALLIBLE phema_plot_design(struct phema_picture **out, const char *title,
                                 struct phema_span text, struct phema_error *err);

/* Appends the file's bytes. PHEMA_ERR_RESOURCE: no memory, or cairo failed, with its message. */
PHEMA_FALLIBLE phema_picture_write(struct phema_strbuf *out, const struct phema_picture *picture,
                                   enum phema_picture_format format, struct phema_error *err);
/* Another title; NULL: as it is. */
PHEMA_FALLIBLE phema_picture_set_title(struct phema_picture *picture, const char *title,
                                       struct phema_error *err);
/* Keeps n panels, from the first-th on. Each target has one, and another for its residual. */
void phema_picture_keep(struct phema_picture *picture, size_t first, size_t n);
/* Lays the picture out for a narrow screen. */
void phema_picture_make_narrow(struct phema_picture *picture);
void phema_picture_free(struct phema_picture *picture); /* takes NULL */

#endif
