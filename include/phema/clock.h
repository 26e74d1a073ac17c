/* clock.h - monotonic time in seconds. */
#ifndef PHEMA_CLOCK_H
#define PHEMA_CLOCK_H

#include <time.h>

/* Seconds on a clock that never steps back. Safe from any thread. */
static inline double phema_clock_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
