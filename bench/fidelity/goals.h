/* goals.h - how near the program should come. */
#ifndef BENCH_FIDELITY_GOALS_H
#define BENCH_FIDELITY_GOALS_H

#include "study.h"

/* True if all goals are reached, in each set of the study. Prints the missed ones. */
bool goals_check(const struct study *study, bool is_quick);

#endif
