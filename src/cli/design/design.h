/* design.h - the values of the verb `design`, the question made of them, and its answer. */
#ifndef CLI_DESIGN_DESIGN_H
#define CLI_DESIGN_DESIGN_H

#include "options.h"
#include "phema/design.h"
#include "phema/plan.h"
#include "phema/render.h"

struct design_values {
    struct cli_common common;
    double until, after, max_error, raw_every;
    const char *model, *sigma_rel, *like, *keep_existing, *output, *unit;
    unsigned model_dtype, motion, trainer, dtype; /* CLI_CHOICE */
    bool is_even, is_forced;
    struct cli_texts profiles;
    struct cli_reals ats, input_sigmas;
    uint64_t disk_bytes, max_widths, params;
};

/* ---- trainers.c: what trainers can do ---- */

#define DESIGN_TRAINERS "any|edm2|ema-pytorch|posthoc-ema|torchtitan|lightning"

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
const struct design_trainer *design_find_trainer(unsigned choice);

struct design_answer;
/* Appends the lines that make a trainer store the design. */
void design_write_lines(struct phema_strbuf *out, const struct design_answer *answer,
                        const struct phema_design *design);

/* ---- question.c ---- */

struct design_asked {
    const struct design_values *values;
    const struct design_trainer *trainer;
    struct phema_design_question question; /* for the search */
    struct phema_design_question finer;    /* for the errors that are shown */
    const char **specs;                    /* [finer.n_targets] */
    double *sigma_rels;                    /* [finer.n_targets] NaN for other shapes */
    const char *unit;
    enum phema_dtype dtypes[2];
    struct phema_plan *run; /* --like, --keep-existing; NULL: neither */
    bool *is_deleted;       /* [run->series->n] of --keep-existing; NULL otherwise */
};
/* Reads the values, the model's checkpoint and runs. The caller clears it, also after a failure. */
PHEMA_FALLIBLE design_ask(struct design_asked *out, struct design_values *values,
                          struct phema_error *err);
void design_asked_clear(struct design_asked *asked);

/* ---- run.c: another training, or the first part of this one ---- */

/* Takes the motion of --like or --keep-existing. */
PHEMA_FALLIBLE design_use_run(struct design_asked *asked, struct design_values *values,
                              struct phema_error *err);
/* Which snapshots of --keep-existing are worth their disk: the others are marked as deleted. */
PHEMA_FALLIBLE design_choose_kept(struct design_asked *asked, struct phema_error *err);

/* ---- answer.c ---- */

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
    /* worst errors of the chosen design in other motions, and of the best one there; NaN: not
     * found */
    double in_motion[PHEMA_N_MOVING];
    struct phema_design best_in_motion[PHEMA_N_MOVING];
};
extern const char *const design_motion_names[PHEMA_N_MOVING];

/* PHEMA_NO, with an answer: no choice is within --max-error */
PHEMA_FALLIBLE design_answer_find(struct design_answer *out, const struct design_asked *asked,
                                  struct phema_error *err);
void design_answer_clear(struct design_answer *answer);

/* ---- print.c ---- */

void design_write_text(struct phema_strbuf *out, const struct design_answer *answer);
/* "0.025, 0.173, raw" */
void design_write_widths(struct phema_strbuf *out, const struct phema_design *design);
/* "every 6250", "64 times, 7815 to 1000000" */
void design_write_times(struct phema_strbuf *out, const struct phema_design *design);

/* ---- design_file.c: JSON ---- */

void design_write_json(struct phema_strbuf *out, const struct design_answer *answer);
/* The chosen design alone, as -o writes it. */
void design_write_file(struct phema_strbuf *out, const struct design_answer *answer);

/* ---- read_design.c: a file that -o has written ---- */

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
    uint64_t raw_every; /* of --raw-every; 0: none */
};
/* All memory is the arena's.
 * PHEMA_ERR_FILE  not such a file; names what is missing */
PHEMA_FALLIBLE design_read_file(struct design_read *out, struct phema_arena *arena,
                                const char *path, struct phema_error *err);

#endif
