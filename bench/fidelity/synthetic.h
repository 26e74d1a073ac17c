/* synthetic.h - simulated movements. */
#ifndef BENCH_FIDELITY_SYNTHETIC_H
#define BENCH_FIDELITY_SYNTHETIC_H

#include "regimes.h"

/* Motion of parameters of size 1 at one step. */
struct motion_at {
    double walk;   /* standard deviation of the step of the walk */
    double pull;   /* remaining fraction of the way to the optimum, before the step */
    double jitter; /* standard deviation of the jitter, new at every step */
};

struct simulation {
    const char *what;
    struct motion_at (*motion)(double step, double n_steps);
    bool is_mixed; /* sizes over three orders of magnitude, and speeds relative to them over two */
};

extern const struct simulation simulation_white, simulation_walk, simulation_drift, simulation_drop,
    simulation_mixed, simulation_fall;

bool simulation_start(struct movement *movement);
void simulation_step(struct movement *movement, uint64_t step);
void simulation_end(struct movement *movement);

#endif
