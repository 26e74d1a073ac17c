// SPDX-License-Identifier: Apache-2.0
/* decode_order.c - compressed snapshots are read tile by tile, in order. */
#include "decode_order.h"

#include <pthread.h>
#include <stdlib.h>

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t has_passed;
    uint64_t next; /* tile whose turn it is */
    bool is_stopped;
};

struct decode_order {
    size_t n;
    struct turn at[]; /* [n] snapshots */
};

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err)
{
    struct decode_order *order = calloc(1, sizeof(*order) + series->n * sizeof(order->at[0]));
    if (!order)
        return phema_fail_memory(err);
    order->n = series->n;
    for (size_t k = 0; k < order->n; k++) {
        (void)pthread_mutex_init(&order->at[k].lock, NULL);
        (void)pthread_cond_init(&order->at[k].has_passed, NULL);
    }
    *out = order;
    return PHEMA_OK;
}

void decode_order_free(struct decode_order *order)
{
    for (size_t k = 0; order && k < order->n; k++) {
        (void)pthread_cond_destroy(&order->at[k].has_passed);
        (void)pthread_mutex_destroy(&order->at[k].lock);
    }
    free(order);
}

bool decode_order_acquire(struct decode_order *order, size_t k, uint64_t tile)
{
    struct turn *turn = &order->at[k];
    (void)pthread_mutex_lock(&turn->lock);
    while (turn->next != tile && !turn->is_stopped)
        (void)pthread_cond_wait(&turn->has_passed, &turn->lock);
    bool may_read = !turn->is_stopped;
    (void)pthread_mutex_unlock(&turn->lock);
    return may_read;
}

void decode_order_release(struct decode_order *order, size_t k, uint64_t tile)
{
    struct turn *turn = &order->at[k];
    (void)pthread_mutex_lock(&turn->lock);
    turn->next = tile + 1;
    (void)pthread_cond_broadcast(&turn->has_passed);
    (void)pthread_mutex_unlock(&turn->lock);
}

void decode_order_stop(struct decode_order *order)
{
    for (size_t k = 0; k < order->n; k++) {
        struct turn *turn = &order->at[k];
        (void)pthread_mutex_lock(&turn->lock);
        turn->is_stopped = true;
        (void)pthread_cond_broadcast(&turn->has_passed);
        (void)pthread_mutex_unlock(&turn->lock);
    }
}
