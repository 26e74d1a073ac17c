/* memory_profile.h - memory per stage of a run: baseline, current and peak. A thread samples two
 * hundred times a second; shorter stages are sampled at their ends. Where no thread can be started,
 * each mark samples. All functions except close are safe from any thread. All except the last
 * accept NULL, and do nothing then. */
#ifndef PHEMA_MEMORY_PROFILE_H
#define PHEMA_MEMORY_PROFILE_H

#include "phema/error.h"
#include "phema/memory.h"

enum phema_stage {
    PHEMA_STAGE_OPEN,       /* snapshots found, opened, listed */
    PHEMA_STAGE_SOLVE,      /* weights, layout of outputs */
    PHEMA_STAGE_ACCUMULATE, /* tensors read, summed, written */
    PHEMA_STAGE_WRITE,      /* compression, checksums */
    PHEMA_STAGE_PUBLISH,    /* synced and renamed */
    PHEMA_N_STAGES
};
extern const char *const phema_stage_names[PHEMA_N_STAGES];

/* One kind of memory over a stage [bytes]. */
struct phema_level {
    uint64_t baseline, now, peak;
};

struct phema_stage_record {
    bool is_entered;
    double elapsed_s;
    struct phema_level anonymous, file, allocated;
    bool has_device; /* the run held memory of devices: */
    struct phema_level device_allocated, device_reserved;
    bool knows_cached;
    uint64_t cached_bytes; /* of all watched files in the page cache, at the end of the stage */
    /* Allocations grew throughout the second half of the stage: by this many bytes. */
    bool is_leaking;
    uint64_t leaked_bytes;
};

struct phema_memory_profile;

/* counts_cache: also count pages of watched files in the page cache, which takes a moment for each
 * file at the end of a stage. */
PHEMA_FALLIBLE phema_memory_profile_open(struct phema_memory_profile **out, bool counts_cache,
                                         struct phema_error *err);
void phema_memory_profile_close(struct phema_memory_profile *profile);

/* Ends the stage before. A stage that begins again continues its record. */
void phema_memory_profile_begin_stage(struct phema_memory_profile *profile, enum phema_stage stage);
/* Ends the last stage; nothing is recorded afterwards. */
void phema_memory_profile_end(struct phema_memory_profile *profile);

/* Progress of the stage: allocations are recorded 64 times on the way, to find leaks. */
void phema_memory_profile_mark(struct phema_memory_profile *profile, uint64_t done, uint64_t total);

/* Memory of devices from now on: the run's own buffers, and all memory that is in use since the run
 * began, the drivers' share included. */
void phema_memory_profile_note_device(struct phema_memory_profile *profile,
                                      uint64_t allocated_bytes, uint64_t reserved_bytes);

/* Counts the pages of a file in the page cache, if it exists. path is copied. */
PHEMA_FALLIBLE phema_memory_profile_watch_file(struct phema_memory_profile *profile,
                                               const char *path, struct phema_error *err);

/* The record of a stage so far. */
struct phema_stage_record phema_memory_profile_stage(struct phema_memory_profile *profile,
                                                     enum phema_stage stage);

#endif
