/* measure_sum_rate.h - rate of summing on synthetic tiles, with the threads and buffers of a run.
 */
#ifndef SYNTH_FORECAST_MEASURE_SUM_RATE_H
#define SYNTH_FORECAST_MEASURE_SUM_RATE_H

#include "run_state.h"

/* Input bytes per second, outputs written meanwhile. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE measure_sum_rate(double *inputs_per_s, const struct run *run,
                                struct phema_error *err);

#endif
