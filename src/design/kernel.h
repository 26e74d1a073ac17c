/* kernel.h - profiles in double, where digits do not matter: F(from; to) and its derivative. */
#ifndef DESIGN_KERNEL_H
#define DESIGN_KERNEL_H

#include "phema/profile.h"

struct kernel {
    enum phema_shape shape;
    double power, origin, end, rate, turn;
};

/* end: of windows and the like
 * PHEMA_ERR_INPUTS  a table, updates every U steps, a reset, a window longer than the time before
 *                   its end */
PHEMA_FALLIBLE kernel_make(struct kernel *kernel, const struct phema_profile *profile, double end,
                           struct phema_error *err);

/* F(from; to), from <= to; 0 before the origin. */
double kernel_decay(const struct kernel *kernel, double from, double to);
/* dF/dt at t, for that F. */
double kernel_density(const struct kernel *kernel, double t, double decay);
/* F changes within about this time before t. */
double kernel_scale(const struct kernel *kernel, double t);
bool kernel_equals(const struct kernel *a, const struct kernel *b);

#endif
