// SPDX-License-Identifier: Apache-2.0
/* journal.c - records finished tiles, and reads the records of an interrupted run. Adjacent tiles
 * become one segment, as long as nothing was counted in any of them or something in each. Counts
 * are known for a whole segment only, so that a segment with counts is used entirely or not at
 * all. */
#include "resume/resume.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "phema/array.h"
#include "phema/clock.h"
#include "phema/packed.h"
#include "phema/strbuf.h"

/* A kill loses about a hundredth of the run, within these bounds. So journals of long runs stay
 * small. */
#define LEAST_PAUSE_S 0.1
#define MOST_PAUSE_S  10.0
#define LOST_FRACTION 0.01

/* Per record, so that it stays below the size that a journal accepts. */
#define MAX_SEGMENTS ((size_t)1 << 17)
#define MAX_VARYING  ((size_t)1 << 20)

/* Larger tiles cannot occur; a journal that claims one is corrupt. */
#define MAX_TILE_ELEMS ((uint64_t)1 << 24)

#define HEAD_NUMBERS    ((size_t)6)
#define SEGMENT_NUMBERS ((size_t)6)
#define DIGEST_NUMBERS  ((size_t)2)

/* Digests have a record of their own, into which PHEMA_MAX_DIGESTS of them fit. */
_Static_assert(PHEMA_MAX_DIGESTS <= (PHEMA_MAX_JOURNAL_RECORD / 8 - HEAD_NUMBERS) / DIGEST_NUMBERS,
               "a journal accepts the largest record");

struct noted {
    uint64_t first, end;
    bool is_counted; /* something was counted in each tile */
};

/* Segments that are not written yet, with their accounts in each output. */
struct pending {
    struct noted *items;           /* [n] */
    struct tile_account *accounts; /* [capacity * m] */
    size_t n, capacity;
    struct phema_hash_sum *digests; /* of the data read for all of them; NULL: none yet */
};

struct journal_writer {
    const struct run *run;
    size_t m; /* outputs of the pass */
    struct done_ranges done;
    pthread_mutex_t lock; /* of the next two members */
    struct pending pending;
    size_t nan_tensor;
    /* used by the watching thread only */
    uint8_t *is_recorded; /* [n_tensors] as varying, in this pass */
    double start_s, next_s;
    bool is_kept;
};

uint64_t journal_writer_bytes(const struct run *run)
{
    /* An account for each thread, and one for each segment, twice while segments are written.
     * Likewise digests, whose text is up to twice their size and is kept by each journal. */
    size_t m = run->outputs->m;
    return (5 * (uint64_t)run->options.n_threads + 4) * m * sizeof(struct tile_account) +
           (m + 4) * input_digests_bytes(run);
}

PHEMA_FALLIBLE journal_writer_open(struct journal_writer **out, const struct run *run,
                                   struct phema_error *err)
{
    struct journal_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return phema_fail_memory(err);
    writer->run = run;
    writer->is_recorded = calloc(run->plan->series->n_tensors + 1, 1);
    writer->start_s = phema_clock_s();
    (void)pthread_mutex_init(&writer->lock, NULL);
    if (!writer->is_recorded) {
        journal_writer_close(writer);
        return phema_fail_memory(err);
    }
    *out = writer;
    return PHEMA_OK;
}

static void clear_pending(struct pending *pending)
{
    free(pending->items);
    free(pending->accounts);
    free(pending->digests);
    *pending = (struct pending){0};
}

void journal_writer_close(struct journal_writer *writer)
{
    if (!writer)
        return;
    (void)pthread_mutex_destroy(&writer->lock);
    clear_pending(&writer->pending);
    done_ranges_clear(&writer->done);
    free(writer->is_recorded);
    free(writer);
}

void journal_writer_begin_pass(struct journal_writer *writer, struct done_ranges *done)
{
    clear_pending(&writer->pending);
    done_ranges_clear(&writer->done);
    writer->done = *done;
    *done = (struct done_ranges){0};
    writer->m = writer->run->end_output - writer->run->first_output;
    writer->nan_tensor = SIZE_MAX;
    writer->is_kept = false;
    memset(writer->is_recorded, 0, writer->run->plan->series->n_tensors);
}

bool journal_writer_has(const struct journal_writer *writer, const struct tile_range *range)
{
    return done_ranges_has(&writer->done, range->position, range->position + range->n_elems);
}

/* ---- Noting ---- */

/* Starts with 4 segments: journal_writer_bytes counts on it. */
static enum phema_status reserve_segment(struct journal_writer *writer, struct phema_error *err)
{
    struct pending *pending = &writer->pending;
    if (pending->n < pending->capacity)
        return PHEMA_OK;
    size_t capacity = pending->capacity ? 2 * pending->capacity : 4;
    struct noted *items = realloc(pending->items, capacity * sizeof(*items));
    if (items)
        pending->items = items;
    struct tile_account *accounts =
        realloc(pending->accounts, capacity * writer->m * sizeof(*accounts));
    if (accounts)
        pending->accounts = accounts;
    if (writer->run->input_digests && !pending->digests)
        pending->digests = input_digests_new_sums(writer->run);
    if (!items || !accounts || (writer->run->input_digests && !pending->digests))
        return phema_fail_memory(err);
    pending->capacity = capacity;
    return PHEMA_OK;
}

/* The segment that the tile extends, or a new one. */
static enum phema_status find_segment(size_t *out, struct journal_writer *writer,
                                      const struct noted *tile, struct phema_error *err)
{
    struct pending *pending = &writer->pending;
    for (size_t x = pending->n; x-- > 0;) {
        struct noted *noted = &pending->items[x];
        if (noted->is_counted != tile->is_counted || noted->end != tile->first)
            continue;
        noted->end = tile->end;
        *out = x;
        return PHEMA_OK;
    }
    enum phema_status status = reserve_segment(writer, err);
    if (status)
        return status;
    *out = pending->n;
    pending->items[pending->n] = *tile;
    memset(pending->accounts + pending->n++ * writer->m, 0, writer->m * sizeof(*pending->accounts));
    return PHEMA_OK;
}

PHEMA_FALLIBLE journal_writer_note(struct journal_writer *writer, struct worker *worker,
                                   struct phema_error *err)
{
    const struct tile_range *range = &worker->range;
    const struct run *run = writer->run;
    struct tile_account *accounts = worker->accounts;
    struct noted tile = {range->position, range->position + range->n_elems, false};
    for (size_t j = writer->run->first_output; j < writer->run->end_output; j++)
        tile.is_counted = tile.is_counted || counts_any(&accounts[j].counts);
    size_t x = 0;
    (void)pthread_mutex_lock(&writer->lock);
    enum phema_status status = find_segment(&x, writer, &tile, err);
    for (size_t j = 0; j < writer->m && !status; j++) {
        struct tile_account *account = &writer->pending.accounts[x * writer->m + j];
        account->sum += accounts[writer->run->first_output + j].sum;
        counts_add(&account->counts, &accounts[writer->run->first_output + j].counts);
    }
    if (worker->digests && !status) { /* of this tile only: earlier ones were moved */
        size_t n = run->plan->series->n;
        size_t first = input_digests_kind(run, range->tensor) * n;
        input_digests_move(writer->pending.digests + first, worker->digests + first, n);
    }
    if (worker->nan_tensor < writer->nan_tensor)
        writer->nan_tensor = worker->nan_tensor;
    (void)pthread_mutex_unlock(&writer->lock);
    memset(accounts + writer->run->first_output, 0, writer->m * sizeof(*accounts));
    return status;
}

/* ---- Writing ---- */

static void pack_head(struct phema_packer *packer, struct journal_record *head)
{
    phema_pack_u64(packer, &head->tile_elems);
    phema_pack_u64(packer, &head->n_segments);
    phema_pack_u64(packer, &head->n_varying);
    phema_pack_u64(packer, &head->nan_tensor);
    phema_pack_u64(packer, &head->n_digests);
    phema_pack_u64(packer, &head->n_unit);
}

static void pack_segment(struct phema_packer *packer, struct segment *segment)
{
    phema_pack_u64(packer, &segment->first);
    phema_pack_u64(packer, &segment->end);
    phema_pack_u64(packer, &segment->account.sum);
    phema_pack_u64(packer, &segment->account.counts.n_nan);
    phema_pack_u64(packer, &segment->account.counts.n_inf);
    phema_pack_u64(packer, &segment->account.counts.n_overflow);
}

static void pack_digest(struct phema_packer *packer, struct phema_hash_sum *digest)
{
    phema_pack_u64(packer, &digest->low);
    phema_pack_u64(packer, &digest->high);
}

/* The contents of one record, the same for all outputs but the accounts. */
struct portion {
    const struct pending *pending;
    size_t first, n; /* of its segments */
    uint64_t *varying;
    size_t n_varying, nan_tensor;
    struct phema_hash_sum *digests; /* [n_digests] */
    size_t n_digests;
};

static enum phema_status write_record(const struct journal_writer *writer, size_t j,
                                      const struct portion *portion, struct phema_error *err)
{
    const struct pending *pending = portion->pending;
    struct journal_record head = {.tile_elems = writer->run->tiling.tile_elems,
                                  .n_segments = portion->n,
                                  .n_varying = portion->n_varying,
                                  .nan_tensor = portion->nan_tensor,
                                  .n_digests = portion->n_digests,
                                  .n_unit = portion->n_digests ? pending->n : 0};
    struct phema_strbuf text = {0};
    struct phema_packer packer = {.out = &text};
    pack_head(&packer, &head);
    for (size_t x = portion->first; x < portion->first + portion->n; x++) {
        struct segment segment = {.first = pending->items[x].first,
                                  .end = pending->items[x].end,
                                  .account = pending->accounts[x * writer->m + j]};
        pack_segment(&packer, &segment);
    }
    for (size_t i = 0; i < portion->n_varying; i++)
        phema_pack_u64(&packer, &portion->varying[i]);
    for (size_t i = 0; i < portion->n_digests; i++)
        pack_digest(&packer, &portion->digests[i]);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = phema_writer_journal_append(
            sink_journal(writer->run->sinks[writer->run->first_output + j]),
            (struct phema_span){(const uint8_t *)text.data, text.size}, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status write_portion(struct journal_writer *writer, const struct portion *portion,
                                       struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < writer->m && !status; j++)
        if (sink_journal(writer->run->sinks[writer->run->first_output + j]))
            status = write_record(writer, j, portion, err);
    return status;
}

/* Lists tensors that vary and are not recorded as such yet. */
static size_t list_varying(struct journal_writer *writer, uint64_t *varying, size_t most)
{
    const struct run *run = writer->run;
    size_t n = 0;
    for (size_t i = 0; i < run->plan->series->n_tensors && n < most; i++) {
        if (writer->is_recorded[i] || !atomic_load_explicit(&run->varies[i], memory_order_relaxed))
            continue;
        writer->is_recorded[i] = true;
        varying[n++] = i;
    }
    return n;
}

/* Written before their segments. Segments are useless without their digests, and digests without
 * all of their segments. */
static enum phema_status write_digests(struct journal_writer *writer, const struct pending *pending,
                                       size_t nan_tensor, struct phema_error *err)
{
    size_t n = input_digests_n_sums(writer->run);
    if (!pending->digests)
        return PHEMA_OK;
    const struct portion portion = {
        .pending = pending, .nan_tensor = nan_tensor, .digests = pending->digests, .n_digests = n};
    enum phema_status status = write_portion(writer, &portion, err);
    input_digests_move(writer->run->input_digests->sums, pending->digests, n);
    return status;
}

/* Varying tensors come first: a torn journal may mark too many, but not too few. */
static enum phema_status write_pending(struct journal_writer *writer, const struct pending *pending,
                                       size_t nan_tensor, struct phema_error *err)
{
    size_t n_tensors = writer->run->plan->series->n_tensors;
    size_t most = n_tensors < MAX_VARYING ? n_tensors : MAX_VARYING;
    uint64_t *varying = calloc(most + 1, sizeof(*varying));
    if (!varying)
        return phema_fail_memory(err);
    struct portion portion = {.pending = pending, .varying = varying, .nan_tensor = nan_tensor};
    enum phema_status status = write_digests(writer, pending, nan_tensor, err);
    while (!status && (portion.n_varying = list_varying(writer, varying, most)) == most && most)
        status = write_portion(writer, &portion, err);
    while (!status && portion.first < pending->n) {
        size_t left = pending->n - portion.first;
        portion.n = left < MAX_SEGMENTS ? left : MAX_SEGMENTS;
        status = write_portion(writer, &portion, err);
        portion.first += portion.n;
        portion.n_varying = 0;
    }
    free(varying);
    return status;
}

PHEMA_FALLIBLE journal_writer_write(struct journal_writer *writer, bool is_last,
                                    struct phema_error *err)
{
    double now_s = phema_clock_s();
    if (!is_last && now_s < writer->next_s)
        return PHEMA_OK;
    (void)pthread_mutex_lock(&writer->lock);
    struct pending pending = writer->pending;
    size_t nan_tensor = writer->nan_tensor;
    writer->pending = (struct pending){0};
    (void)pthread_mutex_unlock(&writer->lock);
    enum phema_status status = PHEMA_OK;
    if (pending.n) {
        status = write_pending(writer, &pending, nan_tensor, err);
        for (size_t j = writer->run->first_output;
             j < writer->run->end_output && !writer->is_kept && !status; j++)
            sink_keep(writer->run->sinks[j], true);
        writer->is_kept = writer->is_kept || !status;
    }
    clear_pending(&pending);
    double pause_s = (now_s - writer->start_s) * LOST_FRACTION;
    writer->next_s = now_s + fmin(fmax(pause_s, LEAST_PAUSE_S), MOST_PAUSE_S);
    return status;
}

/* ---- Reading ---- */

/* From number i of the record on. */
static struct phema_packer numbers_at(const struct journal_record *record, uint64_t i)
{
    return (struct phema_packer){
        .rest = {record->bytes.data + 8 * i, record->bytes.size - (size_t)(8 * i)}};
}

bool journal_record_open(struct journal_record *record, struct phema_span bytes)
{
    *record = (struct journal_record){.bytes = bytes};
    struct phema_packer packer = numbers_at(record, 0);
    pack_head(&packer, record);
    return bytes.size % 8 == 0 && !phema_pack_is_failed(&packer) &&
           record->n_segments <= MAX_SEGMENTS && record->n_varying <= MAX_VARYING &&
           record->n_digests <= PHEMA_MAX_DIGESTS &&
           HEAD_NUMBERS + record->n_segments * SEGMENT_NUMBERS + record->n_varying +
                   record->n_digests * DIGEST_NUMBERS ==
               bytes.size / 8 &&
           record->tile_elems >= BLOCK_ELEMS && record->tile_elems <= MAX_TILE_ELEMS;
}

struct phema_hash_sum journal_record_digest(const struct journal_record *record, uint64_t i)
{
    uint64_t at = HEAD_NUMBERS + record->n_segments * SEGMENT_NUMBERS + record->n_varying;
    struct phema_packer packer = numbers_at(record, at + i * DIGEST_NUMBERS);
    struct phema_hash_sum digest;
    pack_digest(&packer, &digest);
    return digest;
}

void journal_contents_clear(struct journal_contents *contents)
{
    free(contents->items);
    free(contents->varies);
    free(contents->is_torn);
    *contents = (struct journal_contents){0};
}

static enum phema_status begin_unit(struct journal_contents *contents, uint64_t n_segments,
                                    bool is_torn, struct phema_error *err)
{
    if (!phema_array_grow(&contents->is_torn, &contents->unit_capacity, contents->n_units,
                          sizeof(*contents->is_torn)))
        return phema_fail_memory(err);
    if (contents->n_units && contents->n_missing)
        contents->is_torn[contents->n_units - 1] = true;
    contents->is_torn[contents->n_units++] = is_torn;
    contents->n_missing = n_segments;
    return PHEMA_OK;
}

/* A later segment replaces those that it overlaps: they were recomputed. */
static enum phema_status add_segment(struct journal_contents *contents,
                                     const struct segment *segment, struct phema_error *err)
{
    if (!phema_array_grow(&contents->items, &contents->capacity, contents->n,
                          sizeof(*contents->items)))
        return phema_fail_memory(err);
    size_t low = 0, high = contents->n; /* the first that ends after its start */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (contents->items[middle].end <= segment->first)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    for (; low + n < contents->n && contents->items[low + n].first < segment->end; n++)
        contents->is_torn[contents->items[low + n].unit] = true;
    memmove(contents->items + low + 1, contents->items + low + n,
            (contents->n - low - n) * sizeof(*contents->items));
    contents->items[low] = *segment;
    contents->n = contents->n - n + 1;
    return PHEMA_OK;
}

static enum phema_status add_record(struct journal_contents *contents, const struct run *run,
                                    const struct journal_record *record, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (record->n_digests)
        status = begin_unit(contents, record->n_unit,
                            record->n_digests != input_digests_n_sums(run), err);
    struct phema_packer packer = numbers_at(record, HEAD_NUMBERS);
    for (uint64_t i = 0; i < record->n_segments && !status; i++) {
        struct segment segment = {.tile_elems = record->tile_elems, .unit = contents->n_units - 1};
        pack_segment(&packer, &segment);
        contents->n_missing--; /* surplus segments make the unit torn as well */
        if (segment.first < segment.end && segment.end <= tiling_total(&run->tiling))
            status = add_segment(contents, &segment, err);
        else
            contents->is_torn[segment.unit] = true;
    }
    for (uint64_t i = 0; i < record->n_varying && !status; i++) {
        uint64_t tensor = 0;
        phema_pack_u64(&packer, &tensor);
        if (tensor < run->plan->series->n_tensors)
            contents->varies[tensor] = true;
    }
    if (record->nan_tensor < contents->nan_tensor)
        contents->nan_tensor = record->nan_tensor;
    return status;
}

PHEMA_FALLIBLE journal_read(struct journal_contents *contents, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err)
{
    *contents = (struct journal_contents){.varies = calloc(run->plan->series->n_tensors + 1, 1),
                                          .nan_tensor = SIZE_MAX};
    if (!contents->varies)
        return phema_fail_memory(err);
    enum phema_status status = begin_unit(contents, 0, true, err); /* segments without digests */
    while (!status) {
        struct phema_span bytes;
        struct journal_record record;
        status = phema_writer_journal_next(&bytes, journal, err);
        if (status || !bytes.data)
            break;
        if (journal_record_open(&record, bytes))
            status = add_record(contents, run, &record, err);
    }
    if (!status && contents->n_missing)
        contents->is_torn[contents->n_units - 1] = true;
    return status;
}
