/* input_io.h - how snapshot files are read: mmap, read or direct; prefetch ahead of the workers and
 * release after them. */
#ifndef SYNTH_INPUT_IO_H
#define SYNTH_INPUT_IO_H

#include "run.h"

/* A page fault maps the cached pages around it, within this many bytes (the kernel's
 * fault_around_bytes). So mapped pages reach beyond the data at both ends. */
#define FAULT_AROUND_BYTES ((uint64_t)64 << 10)

/* Where another process has found the snapshots (phema_checkpoint_unpack): opens the files that hold
 * elements of the run's part, in snapshots that some output needs; and the templates. Does nothing
 * where all files are open. To be called before anything of them is used.
 * PHEMA_ERR_FILE  a file cannot be opened, or is another one; names the path */
PHEMA_FALLIBLE input_io_demand(const struct run *run, struct phema_error *err);

/* Chooses how each file is read, before anything is sized or opened.
 * PHEMA_ERR_RESOURCE  the process may not open enough descriptors */
PHEMA_FALLIBLE input_io_choose(struct run *run, struct phema_error *err);

/* Opens readers of all snapshots for a pass, and the decode order of compressed ones.
 * PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE input_io_open(struct run *run, struct phema_error *err);
void input_io_close(struct run *run);

/* Asks the kernel to read the data of these tiles, of all snapshots, within a limit.
 * is_cold: files were not in the page cache lately. Otherwise only missing pages are requested. */
void input_io_prefetch(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_cold);

/* Releases the mapped pages of tiles [first, end). is_last: they end a job. */
void input_io_evict(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_last);

#endif
