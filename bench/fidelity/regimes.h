/* regimes.h - ways in which parameters move, step by step in float64: simulated ones and trainings
 * of small networks. Every run gives the same numbers; runs share no state. */
#ifndef BENCH_FIDELITY_REGIMES_H
#define BENCH_FIDELITY_REGIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Constants of the program may be chosen on the tuning sets. The held-out ones only report. The later
 * ones have optimizers, number formats and courses of trainings that the first two have not. */
enum regime_set { SET_TUNING, SET_HELD_OUT, SET_LATER_TUNING, SET_LATER_HELD_OUT, N_SETS };

/* Things that happen in a training; labels tell EVENT_TOLD_RESET alone. */
enum event {
    EVENT_NONE,
    EVENT_SPIKE, /* a learning rate 20 times too high for some steps, at half-time */
    EVENT_THAW,  /* the first half of the parameters is frozen until half-time */
    EVENT_RESET, /* at 40 % the training resumes, and its averages restart from the parameters */
    EVENT_TOLD_RESET, /* the same, with labels that say so, as --reset-at makes them */
    EVENT_STAGE,      /* other data from 60 % on */
    EVENT_MIXTURE,    /* one example in four is of other data from a third on, three from 70 % */
    EVENT_TARGETS,    /* other data in each twelfth of the run, as targets of Q-learning are */
    EVENT_BATCHES,    /* minibatches are averaged: 1 at first, 4 from 40 %, 16 from 70 % */
    EVENT_FULL_BATCH, /* the same eight minibatches at every step */
    EVENT_BFLOAT16    /* parameters are bfloat16 numbers */
};

struct regime {
    const char *name;
    enum regime_set set;
    bool is_quick; /* part of --quick */
    const struct simulation *simulation;
    const struct task *task; /* a training, unless there is a simulation */
    const struct schedule *schedule;
    const struct optimizer *optimizer; /* NULL: that of the task */
    enum event event;
    uint64_t seed;
};

extern const struct regime regimes[];
extern const size_t n_regimes;

/* Whether snapshots show a training that nothing before it foretold. */
bool event_is_sudden(enum event event);

/* What a regime does, in words. */
void regime_print(const struct regime *regime);

/* Moving parameters. */
struct movement {
    const struct regime *regime;
    double *params; /* [n] */
    size_t n;
    uint64_t n_steps;
    void *state; /* of the simulation or training */
};

/* false: out of memory */
bool movement_start(struct movement *movement, const struct regime *regime, uint64_t n_steps);
/* Moves from step - 1 to step, for steps 1 to n_steps. */
void movement_step(struct movement *movement, uint64_t step);
void movement_end(struct movement *movement);

#endif
