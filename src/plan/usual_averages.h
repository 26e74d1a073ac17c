/* usual_averages.h - exponential averages as libraries keep them, as SPECs to try where nothing, or
 * something wrong, says how an average was kept. */
#ifndef PLAN_USUAL_AVERAGES_H
#define PLAN_USUAL_AVERAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Rules are followed step by step, so they are tried up to this time. */
#define USUAL_MOST_STEPS 2e6

struct usual_average {
    char spec[160];
    char meaning[64]; /* "a warm-up as in timm"; "": only the decay */
};

/* The i-th average with a decay ("ema:decay=0.999"): with updates every few steps; with a warm-up. end:
 * time of the newest snapshot. false: there are no more */
bool usual_average_updates(struct usual_average *out, const char *decay, size_t i);
bool usual_average_warmup(struct usual_average *out, const char *decay, size_t i, double end);

/* The i-th that needs no decay: schedules, then decays alone, at last hardly any average. */
bool usual_average(struct usual_average *out, size_t i, double end);

#endif
