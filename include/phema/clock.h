/* clock.h - monotonic time in seconds. */
#ifndef PHEMA_CLOCK_H
#define PHEMA_CLOCK_H

/* Seconds on a clock that never steps back (CLOCK_MONOTONIC). Safe from any thread. */
double phema_clock_s(void);

#endif
