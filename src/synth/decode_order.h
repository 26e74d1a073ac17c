/* decode_order.h - compressed snapshots are decoded once and in order. A worker reads tile t only
 * after every earlier tile was read or skipped. Workers follow each other through the snapshots, so
 * that all decoders are busy. The worker with the lowest tile never waits, so there is no deadlock.
 */
#ifndef SYNTH_DECODE_ORDER_H
#define SYNTH_DECODE_ORDER_H

#include "phema/series.h"

struct decode_order;

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err);
void decode_order_free(struct decode_order *order); /* takes NULL */

/* Waits until it is the tile's turn at snapshot k. false: the run was stopped, do not read. */
bool decode_order_acquire(struct decode_order *order, size_t k, uint64_t tile);
void decode_order_release(struct decode_order *order, size_t k, uint64_t tile);

/* Wakes all waiting workers; later ones do not wait. */
void decode_order_stop(struct decode_order *order);

#endif
