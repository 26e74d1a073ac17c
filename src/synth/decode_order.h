/* decode_order.h - who decodes compressed snapshots. They are decoded once and in order: a worker
 * reads tile t only after every earlier tile was read or skipped. Workers follow each other through
 * the snapshots, so that all decoders are busy. The worker with the lowest tile never waits, so
 * there is no deadlock.
 *
 * Where snapshots are fewer than the threads, that would keep no more decoders busy than there are
 * snapshots. Instead each worker has decoders of its own, and its jobs begin where frames begin, so
 * that no frame is decompressed twice. This needs seek tables of small frames. */
#ifndef SYNTH_DECODE_ORDER_H
#define SYNTH_DECODE_ORDER_H

#include "phema/series.h"

struct decode_order;
struct run;
struct worker;

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err);
void decode_order_free(struct decode_order *order); /* takes NULL */

/* Waits until it is the tile's turn at snapshot k. false: the run was stopped, do not read. */
bool decode_order_acquire(struct decode_order *order, size_t k, uint64_t tile);
void decode_order_release(struct decode_order *order, size_t k, uint64_t tile);

/* Wakes all waiting workers; later ones do not wait. */
void decode_order_stop(struct decode_order *order);

/* ---- Jobs of frames ---- */

/* Whether the run has such jobs. Its files and devices are chosen, its budget is not. */
bool frame_jobs_suit(const struct run *run);

/* Once the tiles are known: the tiles of a job are about a frame. */
void frame_jobs_size(struct run *run);

/* The first tile of a job, also where jobs do not follow frames; the number of tiles at the end. */
uint64_t frame_jobs_first_tile(const struct run *run, uint64_t job);

/* Readers of the worker's own, or those of the run. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE frame_jobs_open_readers(struct worker *worker, struct phema_error *err);
void frame_jobs_close_readers(struct worker *worker);

/* After the last tile of the run was read. PHEMA_ERR_FILE: as phema_reader_finish */
PHEMA_FALLIBLE frame_jobs_finish(struct worker *worker, struct phema_error *err);

#endif
