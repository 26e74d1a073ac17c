// SPDX-License-Identifier: Apache-2.0
/* memory_profile.c - see memory_profile.h. */
#include "phema/memory_profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "phema/parallel.h"

#define SAMPLE_EVERY_NS 5000000
/* Times that allocations are noted on the way through a stage. */
#define N_MARKS 64
/* What may come and go with the moment: buffers of messages, a decoder's of the next file. */
#define LEAK_SLACK_BYTES ((uint64_t)32 << 10)

const char *const phema_stage_names[PHEMA_N_STAGES] = {"open", "solve", "accumulate", "write",
                                                       "publish"};

struct phema_memory_profile {
    pthread_t sampler;
    bool has_sampler;
    pthread_mutex_t lock;
    pthread_cond_t has_ended;
    bool is_ended;
    enum phema_stage stage;
    bool is_in_stage;
    struct timespec since;
    struct phema_stage_record records[PHEMA_N_STAGES];
    uint64_t marks[N_MARKS];                    /* allocated, of the stage that goes on */
    uint64_t n_marked;                          /* those before are passed */
    uint64_t device_allocated, device_reserved; /* now */
    bool counts_cache;
    char **files;
    size_t n_files;
};

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

static void raise_level(struct phema_level *level, uint64_t bytes)
{
    level->now = bytes;
    if (bytes > level->peak)
        level->peak = bytes;
}

static void sample(struct phema_memory_profile *ledger)
{
    if (!ledger->is_in_stage)
        return;
    struct phema_memory memory = phema_memory_now();
    struct phema_stage_record *record = &ledger->records[ledger->stage];
    raise_level(&record->anonymous, memory.anonymous_bytes);
    raise_level(&record->file, memory.file_bytes);
    raise_level(&record->allocated, memory.allocated_bytes);
    raise_level(&record->device_allocated, ledger->device_allocated);
    raise_level(&record->device_reserved, ledger->device_reserved);
    record->has_device =
        record->has_device || record->device_reserved.peak > 0 || record->device_allocated.peak > 0;
}

static void *watch(void *argument)
{
    struct phema_memory_profile *ledger = argument;
    (void)pthread_mutex_lock(&ledger->lock);
    while (!ledger->is_ended) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SAMPLE_EVERY_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&ledger->has_ended, &ledger->lock, &until);
        sample(ledger);
    }
    (void)pthread_mutex_unlock(&ledger->lock);
    return NULL;
}

PHEMA_FALLIBLE phema_memory_profile_open(struct phema_memory_profile **out, bool counts_cache,
                                         struct phema_error *err)
{
    struct phema_memory_profile *ledger = calloc(1, sizeof(*ledger));
    if (!ledger)
        return phema_fail_memory(err);
    (void)pthread_mutex_init(&ledger->lock, NULL);
    (void)pthread_cond_init(&ledger->has_ended, NULL);
    ledger->has_sampler = phema_thread_start(&ledger->sampler, watch, ledger) == 0;
    ledger->counts_cache = counts_cache;
    *out = ledger;
    return PHEMA_OK;
}

/* ---- Leaks ---- */

static uint64_t least(const uint64_t *values, size_t n)
{
    uint64_t result = values[0];
    for (size_t i = 1; i < n; i++)
        result = values[i] < result ? values[i] : result;
    return result;
}

static uint64_t greatest(const uint64_t *values, size_t n)
{
    uint64_t result = values[0];
    for (size_t i = 1; i < n; i++)
        result = values[i] > result ? values[i] : result;
    return result;
}

/* What a loop needs it has after a quarter of its way. From then on a leak is what the last quarter
 * has at its lowest beyond all that the second one had at its highest. */
static void find_leak(struct phema_memory_profile *ledger, struct phema_stage_record *record)
{
    const size_t quarter = N_MARKS / 4;
    if (ledger->n_marked < N_MARKS)
        return;
    uint64_t before = greatest(ledger->marks + quarter, quarter);
    uint64_t middle = least(ledger->marks + 2 * quarter, quarter);
    uint64_t after = least(ledger->marks + 3 * quarter, quarter);
    record->is_leaking = after > before + LEAK_SLACK_BYTES && middle > ledger->marks[quarter];
    record->leaked_bytes = record->is_leaking ? after - before : 0;
}

void phema_memory_profile_mark(struct phema_memory_profile *ledger, uint64_t done, uint64_t total)
{
    if (!ledger || !total)
        return;
    uint64_t until = (uint64_t)((double)done / (double)total * N_MARKS);
    (void)pthread_mutex_lock(&ledger->lock);
    if (until > ledger->n_marked) {
        uint64_t allocated = phema_memory_allocated();
        if (!ledger->has_sampler)
            sample(ledger);
        while (ledger->n_marked < until && ledger->n_marked < N_MARKS)
            ledger->marks[ledger->n_marked++] = allocated;
    }
    (void)pthread_mutex_unlock(&ledger->lock);
}

/* ---- Stages ---- */

static void leave_stage(struct phema_memory_profile *ledger)
{
    if (!ledger->is_in_stage)
        return;
    sample(ledger);
    struct phema_stage_record *record = &ledger->records[ledger->stage];
    record->elapsed_s += seconds_since(&ledger->since);
    find_leak(ledger, record);
    record->cached_bytes = 0;
    record->knows_cached = false;
    for (size_t i = 0; i < ledger->n_files; i++) {
        uint64_t bytes = 0;
        if (!phema_page_cache_bytes(&bytes, ledger->files[i]))
            continue;
        record->knows_cached = true;
        record->cached_bytes += bytes;
    }
    ledger->is_in_stage = false;
}

void phema_memory_profile_begin_stage(struct phema_memory_profile *ledger, enum phema_stage stage)
{
    if (!ledger)
        return;
    (void)pthread_mutex_lock(&ledger->lock);
    leave_stage(ledger);
    ledger->stage = stage;
    ledger->is_in_stage = true;
    ledger->n_marked = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &ledger->since);
    struct phema_stage_record *record = &ledger->records[stage];
    if (!record->is_entered) {
        struct phema_memory memory = phema_memory_now();
        record->is_entered = true;
        record->anonymous.baseline = memory.anonymous_bytes;
        record->file.baseline = memory.file_bytes;
        record->allocated.baseline = memory.allocated_bytes;
        record->device_allocated.baseline = ledger->device_allocated;
        record->device_reserved.baseline = ledger->device_reserved;
    }
    sample(ledger);
    (void)pthread_mutex_unlock(&ledger->lock);
}

void phema_memory_profile_end(struct phema_memory_profile *ledger)
{
    if (!ledger)
        return;
    (void)pthread_mutex_lock(&ledger->lock);
    leave_stage(ledger);
    (void)pthread_mutex_unlock(&ledger->lock);
}

void phema_memory_profile_note_device(struct phema_memory_profile *ledger, uint64_t allocated_bytes,
                                      uint64_t reserved_bytes)
{
    if (!ledger)
        return;
    (void)pthread_mutex_lock(&ledger->lock);
    ledger->device_allocated = allocated_bytes;
    ledger->device_reserved = reserved_bytes;
    sample(ledger);
    (void)pthread_mutex_unlock(&ledger->lock);
}

PHEMA_FALLIBLE phema_memory_profile_watch_file(struct phema_memory_profile *ledger,
                                               const char *path, struct phema_error *err)
{
    if (!ledger || !ledger->counts_cache)
        return PHEMA_OK;
    char *copy = strdup(path);
    (void)pthread_mutex_lock(&ledger->lock);
    char **files = copy ? realloc(ledger->files, (ledger->n_files + 1) * sizeof(*files)) : NULL;
    if (files) {
        ledger->files = files;
        files[ledger->n_files++] = copy;
    }
    (void)pthread_mutex_unlock(&ledger->lock);
    if (files)
        return PHEMA_OK;
    free(copy);
    return phema_fail_memory(err);
}

struct phema_stage_record phema_memory_profile_stage(struct phema_memory_profile *ledger,
                                                     enum phema_stage stage)
{
    (void)pthread_mutex_lock(&ledger->lock);
    struct phema_stage_record record = ledger->records[stage];
    (void)pthread_mutex_unlock(&ledger->lock);
    return record;
}

void phema_memory_profile_close(struct phema_memory_profile *ledger)
{
    if (!ledger)
        return;
    (void)pthread_mutex_lock(&ledger->lock);
    ledger->is_ended = true;
    (void)pthread_cond_signal(&ledger->has_ended);
    (void)pthread_mutex_unlock(&ledger->lock);
    if (ledger->has_sampler)
        (void)pthread_join(ledger->sampler, NULL);
    (void)pthread_cond_destroy(&ledger->has_ended);
    (void)pthread_mutex_destroy(&ledger->lock);
    for (size_t i = 0; i < ledger->n_files; i++)
        free(ledger->files[i]);
    free(ledger->files);
    free(ledger);
}
