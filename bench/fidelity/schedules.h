/* schedules.h - how the learning rate changes during a training. */
#ifndef BENCH_FIDELITY_SCHEDULES_H
#define BENCH_FIDELITY_SCHEDULES_H

struct schedule {
    const char *what;
    double (*factor)(double done); /* of the task's rate; done: share of the run, in (0, 1) */
    double warmup;                 /* share of the run with a linear rise */
};

double schedule_factor(const struct schedule *schedule, double done);

extern const struct schedule schedule_constant, schedule_root, schedule_linear, schedule_cosine,
    schedule_tenth, schedule_wsd, schedule_onecycle, schedule_restarts, schedule_rewarmed,
    schedule_steps;

#endif
