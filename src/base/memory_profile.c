// SPDX-License-Identifier: Apache-2.0
/* memory_profile.c - memory per stage of a run: baseline, peak, leaks (--profile-memory). */
#include "phema/memory_profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "phema/clock.h"
#include "phema/parallel.h"

#define SAMPLE_EVERY_NS 5000000
/* Times that allocations are recorded during a stage. */
#define N_MARKS 64
/* Fluctuation without a leak: buffers of messages, of the decoder of the next file. */
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
    double began_s; /* on phema_clock_s */
    struct phema_stage_record records[PHEMA_N_STAGES];
    uint64_t marks[N_MARKS];                    /* allocated, in the current stage */
    uint64_t n_marked;                          /* marks before this one are recorded */
    uint64_t device_allocated, device_reserved; /* now */
    bool counts_cache;
    char **files;
    size_t n_files;
};

/* The first sample of a stage is its baseline. */
static void sample(struct phema_memory_profile *profile)
{
    if (!profile->is_in_stage)
        return;
    struct phema_memory memory = phema_memory_now();
    struct phema_stage_record *record = &profile->records[profile->stage];
    const struct {
        struct phema_level *level;
        uint64_t bytes;
    } now[] = {{&record->anonymous, memory.anonymous_bytes},
               {&record->file, memory.file_bytes},
               {&record->allocated, memory.allocated_bytes},
               {&record->device_allocated, profile->device_allocated},
               {&record->device_reserved, profile->device_reserved}};
    for (size_t i = 0; i < ARRAY_LEN(now); i++) {
        struct phema_level *level = now[i].level;
        level->now = now[i].bytes;
        level->baseline = record->is_entered ? level->baseline : level->now;
        level->peak = level->now > level->peak ? level->now : level->peak;
    }
    record->is_entered = true;
    record->has_device =
        record->has_device || record->device_reserved.peak > 0 || record->device_allocated.peak > 0;
}

static void *watch(void *argument)
{
    struct phema_memory_profile *profile = argument;
    (void)pthread_mutex_lock(&profile->lock);
    while (!profile->is_ended) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SAMPLE_EVERY_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&profile->has_ended, &profile->lock, &until);
        sample(profile);
    }
    (void)pthread_mutex_unlock(&profile->lock);
    return NULL;
}

PHEMA_FALLIBLE phema_memory_profile_open(struct phema_memory_profile **out, bool counts_cache,
                                         struct phema_error *err)
{
    struct phema_memory_profile *profile = calloc(1, sizeof(*profile));
    if (!profile)
        return phema_fail_memory(err);
    (void)pthread_mutex_init(&profile->lock, NULL);
    (void)pthread_cond_init(&profile->has_ended, NULL);
    profile->has_sampler = phema_thread_start(&profile->sampler, watch, profile) == 0;
    profile->counts_cache = counts_cache;
    *out = profile;
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

/* A loop has allocated all that it needs after a quarter of its way. Then the lowest mark of the
 * last quarter minus the highest of the second one is a leak. */
static void find_leak(struct phema_memory_profile *profile, struct phema_stage_record *record)
{
    const size_t quarter = N_MARKS / 4;
    if (profile->n_marked < N_MARKS)
        return;
    uint64_t before = greatest(profile->marks + quarter, quarter);
    uint64_t middle = least(profile->marks + 2 * quarter, quarter);
    uint64_t after = least(profile->marks + 3 * quarter, quarter);
    record->is_leaking = after > before + LEAK_SLACK_BYTES && middle > profile->marks[quarter];
    record->leaked_bytes = record->is_leaking ? after - before : 0;
}

void phema_memory_profile_mark(struct phema_memory_profile *profile, uint64_t done, uint64_t total)
{
    if (!profile || !total)
        return;
    uint64_t until = (uint64_t)((double)done / (double)total * N_MARKS);
    (void)pthread_mutex_lock(&profile->lock);
    if (until > profile->n_marked) {
        uint64_t allocated = phema_memory_allocated();
        if (!profile->has_sampler)
            sample(profile);
        while (profile->n_marked < until && profile->n_marked < N_MARKS)
            profile->marks[profile->n_marked++] = allocated;
    }
    (void)pthread_mutex_unlock(&profile->lock);
}

/* ---- Stages ---- */

static void leave_stage(struct phema_memory_profile *profile)
{
    if (!profile->is_in_stage)
        return;
    sample(profile);
    struct phema_stage_record *record = &profile->records[profile->stage];
    record->elapsed_s += phema_clock_s() - profile->began_s;
    find_leak(profile, record);
    record->cached_bytes = 0;
    record->knows_cached = false;
    for (size_t i = 0; i < profile->n_files; i++) {
        uint64_t bytes = 0;
        if (!phema_page_cache_bytes(&bytes, profile->files[i]))
            continue;
        record->knows_cached = true;
        record->cached_bytes += bytes;
    }
    profile->is_in_stage = false;
}

void phema_memory_profile_begin_stage(struct phema_memory_profile *profile, enum phema_stage stage)
{
    if (!profile)
        return;
    (void)pthread_mutex_lock(&profile->lock);
    leave_stage(profile);
    profile->stage = stage;
    profile->is_in_stage = true;
    profile->n_marked = 0;
    profile->began_s = phema_clock_s();
    sample(profile);
    (void)pthread_mutex_unlock(&profile->lock);
}

void phema_memory_profile_end(struct phema_memory_profile *profile)
{
    if (!profile)
        return;
    (void)pthread_mutex_lock(&profile->lock);
    leave_stage(profile);
    (void)pthread_mutex_unlock(&profile->lock);
}

void phema_memory_profile_note_device(struct phema_memory_profile *profile,
                                      uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    if (!profile)
        return;
    (void)pthread_mutex_lock(&profile->lock);
    profile->device_allocated = allocated_bytes;
    profile->device_reserved = reserved_bytes;
    sample(profile);
    (void)pthread_mutex_unlock(&profile->lock);
}

PHEMA_FALLIBLE phema_memory_profile_watch_file(struct phema_memory_profile *profile,
                                               const char *path, struct phema_error *err)
{
    if (!profile || !profile->counts_cache)
        return PHEMA_OK;
    char *copy = strdup(path);
    (void)pthread_mutex_lock(&profile->lock);
    char **files = copy ? realloc(profile->files, (profile->n_files + 1) * sizeof(*files)) : NULL;
    if (files) {
        profile->files = files;
        files[profile->n_files++] = copy;
    }
    (void)pthread_mutex_unlock(&profile->lock);
    if (files)
        return PHEMA_OK;
    free(copy);
    return phema_fail_memory(err);
}

struct phema_stage_record phema_memory_profile_stage(struct phema_memory_profile *profile,
                                                     enum phema_stage stage)
{
    (void)pthread_mutex_lock(&profile->lock);
    struct phema_stage_record record = profile->records[stage];
    (void)pthread_mutex_unlock(&profile->lock);
    return record;
}

void phema_memory_profile_close(struct phema_memory_profile *profile)
{
    if (!profile)
        return;
    (void)pthread_mutex_lock(&profile->lock);
    profile->is_ended = true;
    (void)pthread_cond_signal(&profile->has_ended);
    (void)pthread_mutex_unlock(&profile->lock);
    if (profile->has_sampler)
        (void)pthread_join(profile->sampler, NULL);
    (void)pthread_cond_destroy(&profile->has_ended);
    (void)pthread_mutex_destroy(&profile->lock);
    for (size_t i = 0; i < profile->n_files; i++)
        free(profile->files[i]);
    free(profile->files);
    free(profile);
}
