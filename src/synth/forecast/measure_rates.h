/* measure_rates.h - rates of reading, decoding, writing and syncing on this machine, measured in
 * well under a second. Sums are measured on a file in memory, writing on a nameless file next to
 * the outputs. Snapshots are read only where they are compressed or not in the page cache. */
#ifndef SYNTH_FORECAST_MEASURE_RATES_H
#define SYNTH_FORECAST_MEASURE_RATES_H

#include "run.h"

/* [bytes/s], all threads of the run together; infinite for work that the run does not do. */
struct rates {
    double add;    /* summing inputs in the page cache, with the writing of the outputs */
    double decode; /* decompressing snapshots, in bytes of content */
    double fetch;  /* reading inputs that are not in the page cache */
    double write;  /* writing outputs to the page cache */
    double store;  /* writing outputs to stable storage */
    double finish; /* compressing outputs, or rereading them for checksums */
};

/* For a prepared run. cold_path: a snapshot that is not in the page cache, or NULL.
 * PHEMA_ERR_FILE      compressed snapshots are corrupt
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE measure_rates(struct rates *out, const struct run *run, const char *cold_path,
                             struct phema_error *err);

/* Input bytes per second of synthetic tiles, with the threads and buffers of a run, outputs written
 * meanwhile. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE measure_sum_rate(double *inputs_per_s, const struct run *run,
                                struct phema_error *err);

#endif
