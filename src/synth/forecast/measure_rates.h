/* measure_rates.h - how fast this machine does what a run consists of, measured in well under a
 * second: adding up on pages of a file in memory made for that, writing into a file without a name
 * beside the outputs, reading from the snapshots only where they are compressed or not in memory.
 */
#ifndef SYNTH_FORECAST_MEASURE_RATES_H
#define SYNTH_FORECAST_MEASURE_RATES_H

#include "run_state.h"

/* [bytes/s], all threads of the run together; infinite for what does not happen. */
struct rates {
    double add;    /* of inputs in the page cache, what is put of the outputs included */
    double decode; /* of the content of compressed snapshots */
    double fetch;  /* of inputs that are not in the page cache */
    double put;    /* of outputs into the page cache */
    double store;  /* of outputs to stable storage */
    double finish; /* of outputs compressed, or read back for checksums */
};

/* Of a run that is prepared. cold_path: a snapshot that is not in the page cache, or NULL.
 * PHEMA_ERR_FILE      compressed snapshots are corrupt
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE measure_rates(struct rates *out, const struct run *run, const char *cold_path,
                             struct phema_error *err);

#endif
