/* read_ahead.h - inputs of a worker's coming tiles are read past the page cache, many requests at a
 * time (phema/read_queue.h). Tiles in several pieces of a distributed checkpoint are requested into
 * the page cache instead. Requests are made in the order in which tiles are summed: tile by tile,
 * and in a tile snapshot by snapshot. Small tiles of one snapshot share a request. Slots and
 * their bytes form rings, so that memory does not depend on the number of snapshots. One worker
 * uses each of them; all but open and next_job take NULL. */
#ifndef SYNTH_READ_AHEAD_H
#define SYNTH_READ_AHEAD_H

#include "run.h"

struct read_ahead;

/* Memory of a slot beside its part of the buffer, and the stack that a thread touches which reads
 * where io_uring is not allowed. */
#define READ_AHEAD_SLOT_BYTES   ((size_t)512)
#define READ_AHEAD_THREAD_BYTES ((size_t)16 << 10)

/* Memory of a worker's requests: the buffer, the slots and such threads. */
uint64_t read_ahead_bytes(size_t n_slots, size_t buffer_bytes);

/* *out is NULL for a run that reads no file past the page cache. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE read_ahead_open(struct read_ahead **out, struct run *run, struct phema_error *err);
void read_ahead_close(struct read_ahead *ahead);

/* The worker's next job; from run->tiling.n_jobs on, none is left. Jobs are claimed some time
 * before, so that their inputs can be read. */
uint64_t read_ahead_next_job(struct read_ahead *ahead);

/* Before the inputs of a tile are taken, in the order of snapshots. */
void read_ahead_begin_tile(struct read_ahead *ahead, uint64_t tile);

/* Waits for the tile of snapshot k. *data is valid until it is released, and stays as it is for
 * inputs that are not read ahead: scattered, compressed, or of files that are read in other
 * ways. */
PHEMA_FALLIBLE read_ahead_take(const uint8_t **data, struct read_ahead *ahead, size_t k,
                               const struct tile_range *range, struct phema_error *err);

/* false: the next input that is taken is waited for. */
bool read_ahead_has_next(struct read_ahead *ahead);

/* All that was taken is summed: slots whose last tile this is can be used again. */
void read_ahead_release(struct read_ahead *ahead, uint64_t tile);

#endif
