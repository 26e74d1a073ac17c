/* saved.h - series as files, for the program itself. */
#ifndef BENCH_FIDELITY_SAVED_H
#define BENCH_FIDELITY_SAVED_H

#include "stored.h"

/* Writes the directory DIR/REGIME-STEPS-SEED-KIND-DTYPE-TIMES: safetensors and a manifest with the
 * labels, which are true but for averages that restarted. DIR exists. */
PHEMA_FALLIBLE saved_write(const char *directory, const struct stored *stored,
                           const struct series_kind *kind, struct phema_error *err);

#endif
