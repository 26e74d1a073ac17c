/* decay_fit.h - which decay an average really had, from the raw parameters beside it at each
 * checkpoint. docs/solver.md has the method. No tensors. */
#ifndef PHEMA_DECAY_FIT_H
#define PHEMA_DECAY_FIT_H

#include <stdbool.h>
#include <stddef.h>

enum phema_decay_state {
    PHEMA_DECAY_UNCLEAR, /* the data do not decide */
    PHEMA_DECAY_FITTED,
    PHEMA_DECAY_FROZEN, /* the average did not move, although the parameters did */
    PHEMA_DECAY_RAW     /* at its end the average is the parameters themselves */
};

/* One number, and its standard deviation. */
struct phema_estimate {
    double value, spread; /* NaN: none */
};

/* Between two checkpoints. */
struct phema_decay_interval {
    enum phema_decay_state state;
    /* What is left of the average at the begin: the product of all decays between, in [0, 1]. */
    struct phema_estimate kept;
    /* Sum over the new weight of its place: 0 at the begin, 1 at the end; or NaN. It is known, and
     * kept is not, where the average was the parameters themselves at the begin. */
    double place;
    /* The two ways to estimate what is kept, not limited to [0, 1]. Jitter of the parameters makes
     * the plain one too large; the other needs a checkpoint before and one after. */
    struct phema_estimate plain, instrumented;
};

extern const struct phema_decay_interval phema_decay_unknown;

/* Rows of a sample, all borrowed. */
struct phema_decay_rows {
    const double *const *averages, *const *raws; /* [n] rows of [n_elems], by time */
    size_t n, n_elems;
    const size_t *tensors;  /* [n_elems] elements of a tensor are neighbours */
    const double *spacings; /* [n_elems] between neighbouring numbers of the widest dtype ... */
    const double *fineness; /* [2 n] ... and those of each row relative to it: averages, raws */
};

/* Fits every interval.
 *   out      [n - 1]
 *   scratch  [n_elems]
 * Returns how clearly the averages look back at the parameters: 1 at best, 0 for sets that hardly
 * differ, negative where the parameters look back at the averages. Unknown of too few rows or
 * elements. */
struct phema_estimate phema_decay_fit(struct phema_decay_interval *out,
                                      const struct phema_decay_rows *rows, double *scratch);

/* Whether the data contradict a decay that is claimed for an interval, by a material amount.
 *   factor  by which 1 - kept differs at least, above 1
 * Returns 1 where less is kept than claimed, -1 where more is, 0 where nothing is contradicted. */
int phema_decay_refutes(const struct phema_decay_interval *interval, double claimed, double factor);

#endif
