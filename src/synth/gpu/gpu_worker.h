/* feed.h - a worker whose tiles are added up on a device: it reads them into slots that the device
 * copies by itself, and puts what comes back. The other kind is in tile_average.c. */
#ifndef SYNTH_FEED_H
#define SYNTH_FEED_H

#include "worker.h"

struct feed;
struct feed *feed_open(const struct run *run, unsigned index); /* NULL: no memory */
void feed_close(struct feed *feed);
/* [n_slots] of the budget's size, on pages; the device's */
uint8_t *feed_slots(const struct feed *feed);

/* As tile_do. */
PHEMA_FALLIBLE feed_tile(struct worker *worker, uint64_t tile, const struct piece *piece,
                         struct phema_error *err);

#endif
