/* input_io.h - how the files of the snapshots are read, what is asked for ahead of the workers and
 * what is let go of behind them. */
#ifndef SYNTH_INPUT_IO_H
#define SYNTH_INPUT_IO_H

#include "run_state.h"

/* A fault maps what the page cache has around it, within this many bytes (the kernel's
 * fault_around_bytes): so mapped pages reach beyond the data at both ends. */
#define FAULT_AROUND_BYTES ((uint64_t)64 << 10)

/* How each file will be read, before anything is sized or opened.
 * PHEMA_ERR_RESOURCE  more descriptors are needed than this process may have */
PHEMA_FALLIBLE input_io_choose(struct run *run, struct phema_error *err);

/* Readers of all snapshots, for a pass, and whose turn it is at those that are decompressed.
 * PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE input_io_open(struct run *run, struct phema_error *err);
void input_io_close(struct run *run);

/* The kernel begins to read the data of these tiles, of all snapshots, as far as the bound on what
 * is asked for ahead allows. is_cold: files were not in the page cache lately; otherwise only what
 * is known not to be there is asked for. */
void input_io_prefetch(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_cold);

/* Tiles [first, end) have been read; is_last: of a job. */
void input_io_evict(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_last);

#endif
