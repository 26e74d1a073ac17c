// SPDX-License-Identifier: Apache-2.0
/* journal_write.c - see journal_write.h. Tiles that follow one another become one segment, as long
 * as nothing was counted in them or something in each: what was counted in a part of a segment is
 * not known, so that such a segment is used as a whole or not at all. */
#include "resume/journal_write.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "phema/clock.h"
#include "phema/strbuf.h"
#include "phema/writer.h"
#include "run_threads.h"
#include "worker.h"

/* What a kill loses is a hundredth of what was done, as far as these bounds allow: so journals of
 * long runs stay small. */
#define LEAST_PAUSE_S 0.1
#define MOST_PAUSE_S  10.0
#define LOST_FRACTION 0.01

/* In a record: so that it stays below what a journal takes. */
#define MAX_SEGMENTS ((size_t)1 << 17)
#define MAX_VARYING  ((size_t)1 << 20)

#define HEAD_NUMBERS    ((size_t)6)
#define SEGMENT_NUMBERS ((size_t)6)
#define DIGEST_NUMBERS  ((size_t)2)

/* Digests have a record of their own, which PHEMA_MAX_DIGESTS of them fit into. */
_Static_assert(PHEMA_MAX_DIGESTS <= (PHEMA_MAX_JOURNAL_RECORD / 8 - HEAD_NUMBERS) / DIGEST_NUMBERS,
               "a journal takes the largest record");

struct noted {
    uint64_t first, end;
    bool is_counted; /* something, in each tile */
};

/* Segments that are not written yet, and what each output says of them. */
struct pending {
    struct noted *items;           /* [n] */
    struct tile_account *accounts; /* [capacity * m] */
    size_t n, capacity;
    struct phema_hash_sum *digests; /* of what was read for all of them; NULL: none yet */
};

struct journal_writer {
    const struct run *run;
    size_t first, end, m; /* outputs of the pass; m: how many */
    struct done_ranges done;
    pthread_mutex_t lock; /* of what follows */
    struct pending pending;
    size_t nan_tensor;
    /* the watching thread's */
    uint8_t *is_said; /* [n_tensors] that it varies, in this pass */
    double start_s, next_s;
    bool is_kept;
};

uint64_t journal_writer_bytes(size_t m, unsigned n_threads, uint64_t input_digests_bytes)
{
    /* an account for each thread, and segments that are not adjacent, twice while they are written;
     * so digests, which become a text of up to twice their size, and are kept by each journal */
    return (5 * (uint64_t)n_threads + 4) * m * sizeof(struct tile_account) +
           (m + 4) * input_digests_bytes;
}

PHEMA_FALLIBLE journal_writer_open(struct journal_writer **out, const struct run *run,
                                   struct phema_error *err)
{
    struct journal_writer *progress = calloc(1, sizeof(*progress));
    if (!progress)
        return phema_fail_memory(err);
    progress->run = run;
    progress->is_said = calloc(run->plan->series->n_tensors + 1, 1);
    progress->start_s = phema_clock_s();
    (void)pthread_mutex_init(&progress->lock, NULL);
    if (!progress->is_said) {
        journal_writer_close(progress);
        return phema_fail_memory(err);
    }
    *out = progress;
    return PHEMA_OK;
}

static void clear_pending(struct pending *pending)
{
    free(pending->items);
    free(pending->accounts);
    free(pending->digests);
    *pending = (struct pending){0};
}

void journal_writer_close(struct journal_writer *progress)
{
    if (!progress)
        return;
    (void)pthread_mutex_destroy(&progress->lock);
    clear_pending(&progress->pending);
    done_ranges_clear(&progress->done);
    free(progress->is_said);
    free(progress);
}

void journal_writer_begin_pass(struct journal_writer *progress, size_t first, size_t end,
                               struct done_ranges *done)
{
    clear_pending(&progress->pending);
    done_ranges_clear(&progress->done);
    progress->done = *done;
    *done = (struct done_ranges){0};
    progress->first = first;
    progress->end = end;
    progress->m = end - first;
    progress->nan_tensor = SIZE_MAX;
    progress->is_kept = false;
    memset(progress->is_said, 0, progress->run->plan->series->n_tensors);
}

bool journal_writer_has(const struct journal_writer *progress, const struct tile_range *piece)
{
    return done_ranges_has(&progress->done, piece->position, piece->position + piece->n_elems);
}

/* ---- Noting ---- */

static enum phema_status make_room(struct journal_writer *progress, struct phema_error *err)
{
    struct pending *pending = &progress->pending;
    if (pending->n < pending->capacity)
        return PHEMA_OK;
    size_t capacity = pending->capacity ? 2 * pending->capacity : 4;
    struct noted *items = realloc(pending->items, capacity * sizeof(*items));
    if (items)
        pending->items = items;
    struct tile_account *accounts =
        realloc(pending->accounts, capacity * progress->m * sizeof(*accounts));
    if (accounts)
        pending->accounts = accounts;
    if (progress->run->digests && !pending->digests)
        pending->digests = input_digests_new_sums(progress->run);
    if (!items || !accounts || (progress->run->digests && !pending->digests))
        return phema_fail_memory(err);
    pending->capacity = capacity;
    return PHEMA_OK;
}

/* The segment that the tile goes on from, or a new one. */
static enum phema_status find_segment(size_t *out, struct journal_writer *progress,
                                      const struct noted *tile, struct phema_error *err)
{
    struct pending *pending = &progress->pending;
    for (size_t x = pending->n; x-- > 0;) {
        struct noted *noted = &pending->items[x];
        if (noted->is_counted != tile->is_counted || noted->end != tile->first)
            continue;
        noted->end = tile->end;
        *out = x;
        return PHEMA_OK;
    }
    enum phema_status status = make_room(progress, err);
    if (status)
        return status;
    *out = pending->n;
    pending->items[pending->n] = *tile;
    memset(pending->accounts + pending->n++ * progress->m, 0,
           progress->m * sizeof(*pending->accounts));
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_writer_note(struct journal_writer *progress, const struct tile_range *piece,
                                   struct worker *worker, struct phema_error *err)
{
    const struct run *run = progress->run;
    struct tile_account *accounts = worker->accounts;
    struct noted tile = {piece->position, piece->position + piece->n_elems, false};
    for (size_t j = progress->first; j < progress->end; j++)
        tile.is_counted = tile.is_counted || counts_any(&accounts[j].counts);
    size_t x = 0;
    (void)pthread_mutex_lock(&progress->lock);
    enum phema_status status = find_segment(&x, progress, &tile, err);
    for (size_t j = 0; j < progress->m && !status; j++) {
        struct tile_account *account = &progress->pending.accounts[x * progress->m + j];
        account->sum += accounts[progress->first + j].sum;
        counts_add(&account->counts, &accounts[progress->first + j].counts);
    }
    if (worker->digests && !status) /* of the tile alone: the one before moved what there was */
        input_digests_move_kind(run->digests, input_digests_kind(run, piece->tensor),
                                progress->pending.digests, worker->digests);
    if (worker->nan_tensor < progress->nan_tensor)
        progress->nan_tensor = worker->nan_tensor;
    (void)pthread_mutex_unlock(&progress->lock);
    memset(accounts + progress->first, 0, progress->m * sizeof(*accounts));
    return status;
}

/* ---- Writing ---- */

static void put_number(struct phema_strbuf *out, uint64_t number)
{
    char bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(uint8_t)(number >> 8 * i);
    phema_strbuf_append(out, bytes, sizeof(bytes));
}

static void put_segment(struct phema_strbuf *out, const struct noted *noted,
                        const struct tile_account *account)
{
    put_number(out, noted->first);
    put_number(out, noted->end);
    put_number(out, account->sum);
    put_number(out, account->counts.n_nan);
    put_number(out, account->counts.n_inf);
    put_number(out, account->counts.n_overflow);
}

/* What goes into one record, of all outputs alike. */
struct portion {
    const struct pending *pending;
    size_t first, n; /* of its segments */
    const size_t *varying;
    size_t n_varying, nan_tensor;
    const struct phema_hash_sum *digests; /* [n_digests] */
    size_t n_digests;
};

static enum phema_status write_record(const struct journal_writer *progress, size_t j,
                                      const struct portion *portion, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    put_number(&text, progress->run->cut.tile_elems);
    put_number(&text, portion->n);
    put_number(&text, portion->n_varying);
    put_number(&text, portion->nan_tensor);
    put_number(&text, portion->n_digests);
    put_number(&text, portion->n_digests ? portion->pending->n : 0);
    for (size_t x = portion->first; x < portion->first + portion->n; x++)
        put_segment(&text, &portion->pending->items[x],
                    &portion->pending->accounts[x * progress->m + j]);
    for (size_t i = 0; i < portion->n_varying; i++)
        put_number(&text, portion->varying[i]);
    for (size_t i = 0; i < portion->n_digests; i++) {
        put_number(&text, portion->digests[i].low);
        put_number(&text, portion->digests[i].high);
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = phema_writer_journal_append(
            sink_journal(progress->run->sinks[progress->first + j]),
            (struct phema_span){(const uint8_t *)text.data, text.size}, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status write_portion(struct journal_writer *progress,
                                       const struct portion *portion, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < progress->m && !status; j++)
        if (sink_journal(progress->run->sinks[progress->first + j]))
            status = write_record(progress, j, portion, err);
    return status;
}

/* The tensors that are known to vary by now and were not said to. */
static size_t list_varying(struct journal_writer *progress, size_t *varying, size_t most)
{
    const struct run *run = progress->run;
    size_t n = 0;
    for (size_t i = 0; i < run->plan->series->n_tensors && n < most; i++) {
        if (progress->is_said[i] || !atomic_load_explicit(&run->varies[i], memory_order_relaxed))
            continue;
        progress->is_said[i] = true;
        varying[n++] = i;
    }
    return n;
}

/* Before the segments that they are of, which are of no use without them, nor they without all of
 * those. */
static enum phema_status write_digests(struct journal_writer *progress,
                                       const struct pending *pending, size_t nan_tensor,
                                       struct phema_error *err)
{
    const struct input_digests *digests = progress->run->digests;
    if (!pending->digests)
        return PHEMA_OK;
    const struct portion portion = {.pending = pending,
                                    .nan_tensor = nan_tensor,
                                    .digests = pending->digests,
                                    .n_digests = input_digests_n_sums(progress->run)};
    enum phema_status status = write_portion(progress, &portion, err);
    input_digests_move(digests, digests->sums, pending->digests);
    return status;
}

/* Which tensors vary comes first: of what is torn too much may be known, but not too little. */
static enum phema_status write_pending(struct journal_writer *progress,
                                       const struct pending *pending, size_t nan_tensor,
                                       struct phema_error *err)
{
    size_t n_tensors = progress->run->plan->series->n_tensors;
    size_t most = n_tensors < MAX_VARYING ? n_tensors : MAX_VARYING;
    size_t *varying = calloc(most + 1, sizeof(*varying));
    if (!varying)
        return phema_fail_memory(err);
    struct portion portion = {.pending = pending, .varying = varying, .nan_tensor = nan_tensor};
    enum phema_status status = write_digests(progress, pending, nan_tensor, err);
    while (!status && (portion.n_varying = list_varying(progress, varying, most)) == most && most)
        status = write_portion(progress, &portion, err);
    while (!status && portion.first < pending->n) {
        size_t left = pending->n - portion.first;
        portion.n = left < MAX_SEGMENTS ? left : MAX_SEGMENTS;
        status = write_portion(progress, &portion, err);
        portion.first += portion.n;
        portion.n_varying = 0;
    }
    free(varying);
    return status;
}

static void keep_outputs(struct journal_writer *progress)
{
    for (size_t j = progress->first; j < progress->end && !progress->is_kept; j++)
        sink_keep(progress->run->sinks[j], true);
    progress->is_kept = true;
}

PHEMA_FALLIBLE journal_writer_write(struct journal_writer *progress, bool is_last,
                                    struct phema_error *err)
{
    double now_s = phema_clock_s();
    if (!is_last && now_s < progress->next_s)
        return PHEMA_OK;
    (void)pthread_mutex_lock(&progress->lock);
    struct pending pending = progress->pending;
    size_t nan_tensor = progress->nan_tensor;
    progress->pending = (struct pending){0};
    (void)pthread_mutex_unlock(&progress->lock);
    enum phema_status status = PHEMA_OK;
    if (pending.n) {
        status = write_pending(progress, &pending, nan_tensor, err);
        if (!status)
            keep_outputs(progress);
    }
    clear_pending(&pending);
    double pause_s = (now_s - progress->start_s) * LOST_FRACTION;
    pause_s = pause_s < LEAST_PAUSE_S ? LEAST_PAUSE_S : pause_s;
    progress->next_s = now_s + (pause_s > MOST_PAUSE_S ? MOST_PAUSE_S : pause_s);
    return status;
}

/* ---- Reading ---- */

static uint64_t number_at(struct phema_span bytes, uint64_t i)
{
    uint64_t number = 0;
    for (unsigned b = 0; b < 8; b++)
        number |= (uint64_t)bytes.data[8 * i + b] << 8 * b;
    return number;
}

bool journal_record_open(struct journal_record *record, struct phema_span bytes)
{
    size_t n = bytes.size / 8;
    if (bytes.size % 8 || n < HEAD_NUMBERS)
        return false;
    *record = (struct journal_record){.bytes = bytes,
                                      .tile_elems = number_at(bytes, 0),
                                      .n_segments = number_at(bytes, 1),
                                      .n_varying = number_at(bytes, 2),
                                      .nan_tensor = number_at(bytes, 3),
                                      .n_digests = number_at(bytes, 4),
                                      .n_unit = number_at(bytes, 5)};
    return record->n_segments <= MAX_SEGMENTS && record->n_varying <= MAX_VARYING &&
           record->n_digests <= PHEMA_MAX_DIGESTS &&
           HEAD_NUMBERS + record->n_segments * SEGMENT_NUMBERS + record->n_varying +
                   record->n_digests * DIGEST_NUMBERS ==
               n;
}

struct journal_writer_segment journal_record_segment(const struct journal_record *record,
                                                     uint64_t i)
{
    uint64_t at = HEAD_NUMBERS + i * SEGMENT_NUMBERS;
    return (struct journal_writer_segment){
        .first = number_at(record->bytes, at),
        .end = number_at(record->bytes, at + 1),
        .account = {.sum = number_at(record->bytes, at + 2),
                    .counts = {.n_nan = number_at(record->bytes, at + 3),
                               .n_inf = number_at(record->bytes, at + 4),
                               .n_overflow = number_at(record->bytes, at + 5)}}};
}

uint64_t journal_record_varying(const struct journal_record *record, uint64_t i)
{
    return number_at(record->bytes, HEAD_NUMBERS + record->n_segments * SEGMENT_NUMBERS + i);
}

struct phema_hash_sum journal_record_digest(const struct journal_record *record, uint64_t i)
{
    uint64_t at = HEAD_NUMBERS + record->n_segments * SEGMENT_NUMBERS + record->n_varying;
    return (struct phema_hash_sum){.low = number_at(record->bytes, at + i * DIGEST_NUMBERS),
                                   .high = number_at(record->bytes, at + i * DIGEST_NUMBERS + 1)};
}
