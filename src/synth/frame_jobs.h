/* frame_jobs.h - compressed snapshots that are fewer than the threads. Workers that follow each
 * other (decode_order.h) would keep no more decoders busy than there are snapshots. Instead each
 * worker has decoders of its own, and its jobs begin where frames begin, so that no frame is
 * decompressed twice. This needs seek tables of small frames. */
#ifndef SYNTH_FRAME_JOBS_H
#define SYNTH_FRAME_JOBS_H

#include "worker.h"

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
