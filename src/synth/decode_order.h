/* turns.h - decompressed snapshots are read once and in order: at each of them tiles take turns.
 * Whoever works on tile t waits until all before it have passed, reads or not, and passes. Workers
 * follow each other through the snapshots like cars of a train, so that all decoders are busy; the
 * first one never waits, so that none waits for ever. */
#ifndef SYNTH_TURNS_H
#define SYNTH_TURNS_H

#include "phema/series.h"

struct turns;

PHEMA_FALLIBLE turns_make(struct turns **out, const struct phema_series *series,
                          struct phema_error *err);
void turns_free(struct turns *turns); /* takes NULL */

/* Of snapshot k, which is decoded. false: the run was stopped, and nobody may read on. */
bool turns_wait(struct turns *turns, size_t k, uint64_t tile);
void turns_pass(struct turns *turns, size_t k, uint64_t tile);

/* Wakes all who wait. */
void turns_stop(struct turns *turns);

#endif
