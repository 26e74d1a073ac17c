/* schedule.h - the learning rate over a training, from a file or a short text.
 * Rates are relative: only their ratios matter. Time is the clock of the averages [steps].
 * A schedule does not change once parsed; safe from any thread. */
#ifndef PHEMA_SCHEDULE_H
#define PHEMA_SCHEDULE_H

#include "phema/error.h"
#include "phema/span.h"

struct phema_schedule;

/* True for a SPEC, that is KIND or KIND:KEY=VALUE,... of a known kind; all else is a file's
 * path. */
bool phema_schedule_is_spec(const char *text);

/* Parses a SPEC, or reads the file of that path.
 *   constant       warmup
 *   linear         warmup, end: falls to end
 *   cosine         warmup, end: falls to end by half a cosine
 *   wsd            warmup, decay, end: constant, then linear to end in the last decay steps (20%)
 *   inverse-sqrt   warmup, reference: sqrt(reference / step) after the reference, by default the
 *                  end of the warm-up
 *   onecycle       warmup (30%), start (0.04), end (4e-6): half a cosine up and one down
 * Rates are parts of the highest one; a warm-up is linear from 0, and 0 steps long by default. Keys
 * in steps are numbers ("2k") or parts of the run ("20%"). Every kind has the key steps, the
 * length of the run; its default is the argument.
 * A file has lines "step,rate", or columns of any order after a header with the names step and lr
 * or learning_rate; or JSON lines, objects with such keys. Lines without a rate are skipped. Steps
 * ascend; between two of them the rate is linear.
 *   steps  of the run, > 0, for a SPEC without the key; NaN: unknown
 * PHEMA_ERR_USAGE     no such SPEC; the length of the run is needed, and unknown
 * PHEMA_ERR_FILE      the file cannot be read, is no such list, is longer than 64 MiB or 2^20
 *                     points, or has no rate above 0; the message has path and line
 * PHEMA_ERR_RESOURCE  no memory: 40 bytes a point */
PHEMA_FALLIBLE phema_schedule_parse(struct phema_schedule **out, const char *text, double steps,
                                    struct phema_error *err);
/* The rate 1 up to a step, > 0, and another one from there on. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_schedule_make_jump(struct phema_schedule **out, double step, double rate,
                                        struct phema_error *err);
void phema_schedule_free(struct phema_schedule *schedule); /* takes NULL */

/* The rate at a step. Before the first and after the last step of the schedule it is constant. */
double phema_schedule_rate(const struct phema_schedule *schedule, double step);

/* The mean of the squared rate over (a, b], finite, a < b, to some 1e-14 of itself. */
double phema_schedule_mean_square(const struct phema_schedule *schedule, double a, double b);

#endif
