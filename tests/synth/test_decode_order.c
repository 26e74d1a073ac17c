// SPDX-License-Identifier: Apache-2.0
/* Workers read the tiles of compressed snapshots in order, without deadlock. */
#include "decode_order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

enum { N_TILES = 500, N_SNAPSHOTS = 7, N_THREADS = 6 };

/* Others are not read in turns. */
static bool is_compressed(size_t k)
{
    return k % 3 != 1;
}

static struct decode_order *make(size_t n)
{
    struct phema_snapshot snapshots[N_SNAPSHOTS] = {{0}};
    struct phema_series series = {.snapshots = snapshots, .n = n};
    for (size_t k = 0; k < n; k++)
        snapshots[k].is_compressed = is_compressed(k);
    struct decode_order *turns = NULL;
    struct phema_error err = {0};
    assert_ok(decode_order_new(&turns, &series, &err), &err);
    return turns;
}

/* A thread writes these arrays during its turn, without a lock. The thread sanitizer checks that
 * turns are enough. */
struct train {
    struct decode_order *turns;
    _Atomic uint64_t next_tile;
    uint64_t passed[N_SNAPSHOTS][N_TILES];
    size_t n_passed[N_SNAPSHOTS];
    _Atomic unsigned n_refused;
};

static void *follow(void *argument)
{
    struct train *train = argument;
    for (;;) {
        uint64_t tile = atomic_fetch_add(&train->next_tile, 1);
        if (tile >= N_TILES)
            return NULL;
        for (size_t k = 0; k < N_SNAPSHOTS; k++) {
            if (!is_compressed(k))
                continue;
            if (!decode_order_acquire(train->turns, k, tile)) {
                atomic_fetch_add(&train->n_refused, 1);
                return NULL;
            }
            train->passed[k][train->n_passed[k]++] = tile;
            decode_order_release(train->turns, k, tile);
        }
    }
}

static void run_train(struct train *train, unsigned n_threads)
{
    pthread_t threads[N_THREADS];
    for (unsigned t = 0; t < n_threads; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, follow, train), 0);
    for (unsigned t = 0; t < n_threads; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
}

static void tiles_pass_every_snapshot_in_their_order(void **state)
{
    (void)state;
    static const unsigned n_threads[] = {1, 2, N_THREADS};
    for (size_t c = 0; c < ARRAY_LEN(n_threads); c++) {
        struct train *train = calloc(1, sizeof(*train));
        assert_non_null(train);
        train->turns = make(N_SNAPSHOTS);
        run_train(train, n_threads[c]);
        for (size_t k = 0; k < N_SNAPSHOTS; k++) {
            size_t n_passed = is_compressed(k) ? N_TILES : 0;
            assert_int_equal(train->n_passed[k], n_passed);
            for (size_t t = 0; t < n_passed; t++)
                assert_int_equal(train->passed[k][t], t);
        }
        assert_int_equal(train->n_refused, 0);
        decode_order_free(train->turns);
        free(train);
    }
}

/* One thread: any wait would be a deadlock. */
static void the_next_tile_never_waits(void **state)
{
    (void)state;
    struct decode_order *turns = make(2);
    assert_true(decode_order_acquire(turns, 0, 0));
    decode_order_release(turns, 0, 0);
    assert_true(decode_order_acquire(turns, 0, 1)); /* snapshots do not wait for each other */
    decode_order_release(turns, 0, 1);
    assert_true(decode_order_acquire(turns, 1, 0));
    decode_order_free(turns);
    decode_order_free(NULL);
}

struct waiter {
    struct decode_order *turns;
    size_t k;
    uint64_t tile;
    _Atomic bool is_back;
    bool may_read;
};

static void *wait_in_vain(void *argument)
{
    struct waiter *waiter = argument;
    waiter->may_read = decode_order_acquire(waiter->turns, waiter->k, waiter->tile);
    atomic_store(&waiter->is_back, true);
    return NULL;
}

static void a_stop_wakes_all_waiting_workers(void **state)
{
    (void)state;
    struct decode_order *turns = make(2);
    struct waiter waiters[] = {
        {turns, 0, 7, false, true}, {turns, 0, 9, false, true}, {turns, 1, 1, false, true}};
    pthread_t threads[ARRAY_LEN(waiters)];
    for (size_t w = 0; w < ARRAY_LEN(waiters); w++)
        assert_int_equal(pthread_create(&threads[w], NULL, wait_in_vain, &waiters[w]), 0);
    assert_true(decode_order_acquire(turns, 0, 0));
    decode_order_release(turns, 0, 0); /* wakes them in vain: the next tile is 1 */
    assert_int_equal(usleep(20000), 0);
    for (size_t w = 0; w < ARRAY_LEN(waiters); w++)
        assert_false(atomic_load(&waiters[w].is_back));
    decode_order_stop(turns);
    for (size_t w = 0; w < ARRAY_LEN(waiters); w++) {
        assert_int_equal(pthread_join(threads[w], NULL), 0);
        assert_false(waiters[w].may_read);
    }
    assert_false(decode_order_acquire(turns, 0, 1)); /* no new worker begins */
    decode_order_free(turns);
}

/* A failing worker stops the others wherever they are, and all of them return. */
static void a_failing_worker_stops_all_others(void **state)
{
    (void)state;
    struct train *train = calloc(1, sizeof(*train));
    assert_non_null(train);
    train->turns = make(N_SNAPSHOTS);
    train->next_tile = 1; /* no worker takes tile 0 */
    pthread_t threads[N_THREADS];
    for (unsigned t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, follow, train), 0);
    decode_order_stop(train->turns);
    for (unsigned t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_int_equal(train->n_refused, N_THREADS);
    for (size_t k = 0; k < N_SNAPSHOTS; k++)
        assert_int_equal(train->n_passed[k], 0);
    decode_order_free(train->turns);
    free(train);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tiles_pass_every_snapshot_in_their_order),
    cmocka_unit_test(the_next_tile_never_waits),
    cmocka_unit_test(a_stop_wakes_all_waiting_workers),
    cmocka_unit_test(a_failing_worker_stops_all_others),
};
TEST_GROUP(tests)
