/* decode_order.h - decompressed snapshots are read once and in order: at each of them tiles take
 * turns. Whoever works on tile t waits until all before it have passed, reads or not, and passes.
 * Workers follow each other through the snapshots like cars of a train, so that all decoders are
 * busy; the first one never waits, so that none waits for ever. */
#ifndef SYNTH_DECODE_ORDER_H
#define SYNTH_DECODE_ORDER_H

#include "phema/series.h"

struct decode_order;

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err);
void decode_order_free(struct decode_order *turns); /* takes NULL */

/* Of snapshot k, which is decoded. false: the run was stopped, and nobody may read on. */
bool decode_order_acquire(struct decode_order *turns, size_t k, uint64_t tile);
void decode_order_release(struct decode_order *turns, size_t k, uint64_t tile);

/* Wakes all who wait. */
void decode_order_stop(struct decode_order *turns);

#endif
