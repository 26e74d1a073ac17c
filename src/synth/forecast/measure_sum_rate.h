/* trial.h - adding up for a moment on data made for that, in the way and with the threads of a run.
 */
#ifndef SYNTH_TRIAL_H
#define SYNTH_TRIAL_H

#include "run_state.h"

/* Bytes of inputs a second, and of outputs. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE trial_run(double *inputs_per_s, const struct run *run, struct phema_error *err);

#endif
