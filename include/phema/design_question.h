/* design_question.h - what a training should store: from what is wanted to a question, and its
 * answer. The search is that of design.h. */
#ifndef PHEMA_DESIGN_QUESTION_H
#define PHEMA_DESIGN_QUESTION_H

#include "phema/design.h"
#include "phema/ops.h"

/* ---- What is wanted ---- */

#define DESIGN_TRAINERS "any|edm2|ema-pytorch|posthoc-ema|torchtitan|lightning"

/* What a trainer can store; in the order of DESIGN_TRAINERS. */
struct design_trainer {
    const char *name;
    size_t least_widths, most_widths;
    enum phema_shape shape; /* of its averages */
    bool has_raw;           /* raw parameters lie beside them in each file */
    bool is_even;           /* saves at multiples of an interval */
    double grain;           /* of which that is a multiple; 0: any */
    size_t n_states;   /* copies of the model in f32 that each file has besides: Adam's state */
    size_t n_useless;  /* times at which it saves for nothing */
    double width_unit; /* of which widths are multiples, as its names have them; 0: any */
    const char *unit;  /* of its times; NULL: any */
    enum phema_dtype dtypes[2];
    size_t n_dtypes;
};
extern const struct design_trainer design_trainers[];

struct design_wishes {
    double until; /* steps of the training; NaN: missing */
    /* The model: a number of parameters, or a checkpoint or its size as text. */
    uint64_t params;
    const char *model;
    unsigned bytes_per_param; /* of the size */
    /* Averages that will be wanted: widths, or a range of them, and other profiles. */
    const double *sigma_rels; /* [n_sigma_rels] */
    size_t n_sigma_rels;
    double from, to;        /* 0: no range */
    const char *range_text; /* of any of these, as the answer repeats it; may be NULL */
    const char *const *profiles;
    size_t n_profiles;
    const double *ats; /* [n_ats] their times; the end is always among them */
    size_t n_ats;
    double after;        /* at any time from here on, too; NaN: not */
    uint64_t disk_bytes; /* 0: as much as max_error needs */
    double max_error;    /* the least disk with this worst error; NaN: the best on the disk */
    size_t trainer;      /* of design_trainers */
    uint64_t max_widths; /* 0: 3, or what the trainer can */
    const double *input_sigmas; /* [n_input_sigmas] that cannot be chosen */
    size_t n_input_sigmas;
    double raw_every; /* raw checkpoints that are kept anyway; NaN: none */
    bool is_even;
    const char *unit;                       /* NULL: the trainer's, or steps */
    const enum phema_dtype *dtype;          /* NULL: the trainer's */
    const enum phema_design_moving *motion; /* NULL: that of a run, or the walk */
    /* Snapshots whose parameters moved as these will: of another training, or of this one, which has
     * begun. */
    const char *like, *keep_existing;
    const struct phema_plan *like_plan; /* instead of like: opened by the caller */
    const char *output;                 /* where the design is stored, for lines; NULL: nowhere */
};

/* ---- The question ---- */

struct design_asked {
    const struct design_wishes *wishes;
    const struct design_trainer *trainer;
    struct phema_design_question question; /* for the search */
    struct phema_design_question finer;    /* for the errors that are shown */
    const char **specs;                    /* [finer.n_targets] */
    double *sigma_rels;                    /* [finer.n_targets] NaN for other shapes */
    const char *unit;
    enum phema_dtype dtypes[2];
    struct phema_plan *run; /* of like or keep_existing; NULL: neither */
    bool *is_deleted;       /* [run->series->n] of keep_existing; NULL otherwise */
    struct phema_arena arena;
};
/* Reads the model's checkpoint and runs. Borrows the wishes. The caller clears out, also after a
 * failure. */
PHEMA_FALLIBLE design_ask(struct design_asked *out, const struct design_wishes *wishes,
                          const struct phema_listener *listener, struct phema_error *err);
void design_asked_clear(struct design_asked *asked);

/* ---- The answer ---- */

/* What the same disk would give otherwise. */
#define DESIGN_MAX_OTHERS 8
struct design_other {
    const char *name;
    struct phema_design design;
};

struct design_answer {
    const struct design_asked *asked;
    struct phema_design_choices choices;
    struct design_other others[DESIGN_MAX_OTHERS];
    size_t n_others;
    /* Other motions: the worst error of the chosen design there, and the best one. */
    struct design_motion {
        const char *name;
        double worst_error;
        struct phema_design best;
    } motions[PHEMA_N_MOVING];
    size_t n_motions;
};

/* PHEMA_NO, with an answer: no choice is within max_error */
PHEMA_FALLIBLE design_answer_find(struct design_answer *out, const struct design_asked *asked,
                                  const struct phema_listener *listener, struct phema_error *err);
void design_answer_clear(struct design_answer *answer);

/* ---- A stored design, read again ---- */

struct design_read {
    double until;
    const uint64_t *times; /* [n_times] ascending */
    size_t n_times;
    const double *sigma_rels; /* [n] of power functions */
    size_t n;
    const char *ema; /* SPEC of an exponential average; NULL: none */
    enum phema_dtype dtype;
    bool has_raw;
    bool counts_steps;  /* else a training stores at the first step at or after a time */
    uint64_t raw_every; /* of raw checkpoints that are kept anyway; 0: none */
};
/* All memory is the arena's.
 * PHEMA_ERR_FILE  not such a file; names what is missing */
PHEMA_FALLIBLE design_read_file(struct design_read *out, struct phema_arena *arena,
                                const char *path, struct phema_error *err);

#endif
