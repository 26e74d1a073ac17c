// SPDX-License-Identifier: Apache-2.0
/* decode_order.c - see decode_order.h. */
#include "decode_order.h"

#include <pthread.h>
#include <stdlib.h>

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t has_passed;
    uint64_t next; /* tile */
    bool is_stopped;
};

struct decode_order {
    size_t n;
    struct turn at[]; /* [n] snapshots */
};

PHEMA_FALLIBLE decode_order_new(struct decode_order **out, const struct phema_series *series,
                                struct phema_error *err)
{
    struct decode_order *turns = calloc(1, sizeof(*turns) + series->n * sizeof(turns->at[0]));
    if (!turns)
        return phema_fail_memory(err);
    turns->n = series->n;
    for (size_t k = 0; k < turns->n; k++) {
        (void)pthread_mutex_init(&turns->at[k].lock, NULL);
        (void)pthread_cond_init(&turns->at[k].has_passed, NULL);
    }
    *out = turns;
    return PHEMA_OK;
}

void decode_order_free(struct decode_order *turns)
{
    for (size_t k = 0; turns && k < turns->n; k++) {
        (void)pthread_cond_destroy(&turns->at[k].has_passed);
        (void)pthread_mutex_destroy(&turns->at[k].lock);
    }
    free(turns);
}

bool decode_order_acquire(struct decode_order *turns, size_t k, uint64_t tile)
{
    struct turn *turn = &turns->at[k];
    (void)pthread_mutex_lock(&turn->lock);
    while (turn->next != tile && !turn->is_stopped)
        (void)pthread_cond_wait(&turn->has_passed, &turn->lock);
    bool may_read = !turn->is_stopped;
    (void)pthread_mutex_unlock(&turn->lock);
    return may_read;
}

void decode_order_release(struct decode_order *turns, size_t k, uint64_t tile)
{
    struct turn *turn = &turns->at[k];
    (void)pthread_mutex_lock(&turn->lock);
    turn->next = tile + 1;
    (void)pthread_cond_broadcast(&turn->has_passed);
    (void)pthread_mutex_unlock(&turn->lock);
}

void decode_order_stop(struct decode_order *turns)
{
    for (size_t k = 0; k < turns->n; k++) {
        struct turn *turn = &turns->at[k];
        (void)pthread_mutex_lock(&turn->lock);
        turn->is_stopped = true;
        (void)pthread_cond_broadcast(&turn->has_passed);
        (void)pthread_mutex_unlock(&turn->lock);
    }
}
