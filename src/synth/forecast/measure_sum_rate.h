/* measure_sum_rate.h - adding up for a moment on data made for that, in the way and with the
 * threads of a run.
 */
#ifndef SYNTH_FORECAST_MEASURE_SUM_RATE_H
#define SYNTH_FORECAST_MEASURE_SUM_RATE_H

#include "run_state.h"

/* Bytes of inputs a second, and of outputs. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE measure_sum_rate(double *inputs_per_s, const struct run *run,
                                struct phema_error *err);

#endif
