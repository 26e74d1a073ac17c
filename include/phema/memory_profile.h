/* memory_profile.h - the memory of a run, stage by stage: where each began, what it holds, its
 * peak. A thread of the ledger looks two hundred times a second; what is shorter than that is seen
 * at the ends of a stage. Where no thread can be had, the ledger looks at each mark. All functions
 * but close may be called from any thread, and but the last with NULL: then nothing is kept. */
#ifndef PHEMA_MEMORY_PROFILE_H
#define PHEMA_MEMORY_PROFILE_H

#include "phema/error.h"
#include "phema/memory.h"

enum phema_stage {
    PHEMA_STAGE_OPEN,       /* snapshots found, opened, listed */
    PHEMA_STAGE_SOLVE,      /* weights, layout of outputs */
    PHEMA_STAGE_ACCUMULATE, /* tensors read, added up, put */
    PHEMA_STAGE_WRITE,      /* what is left then: compression, checksums */
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
    bool has_device; /* some memory of devices was held: */
    struct phema_level device_allocated, device_reserved;
    bool knows_cached;
    uint64_t cached_bytes; /* of all watched files in the page cache, at the end of the stage */
    /* Growth of what is allocated over the second half of the stage, where it never stopped: a
     * leak. */
    bool is_leaking;
    uint64_t leaked_bytes;
};

struct phema_memory_profile;

/* counts_cache: whether files are watched; that takes a moment for each at the end of a stage. */
PHEMA_FALLIBLE phema_memory_profile_open(struct phema_memory_profile **out, bool counts_cache,
                                         struct phema_error *err);
void phema_memory_profile_close(struct phema_memory_profile *ledger);

/* The stage before ends here. A stage that is entered again goes on. */
void phema_memory_profile_begin_stage(struct phema_memory_profile *ledger, enum phema_stage stage);
/* The last stage ends; nothing more is recorded. */
void phema_memory_profile_end(struct phema_memory_profile *ledger);

/* How far the stage is: what is allocated is noted 64 times on the way, to find leaks. */
void phema_memory_profile_mark(struct phema_memory_profile *ledger, uint64_t done, uint64_t total);

/* What the run has of the memory of devices from now on: its own buffers, and all that is gone
 * since it came, the drivers' share included. */
void phema_memory_profile_note_device(struct phema_memory_profile *ledger, uint64_t allocated_bytes,
                                      uint64_t reserved_bytes);

/* A file whose pages in the page cache count, if it exists. path is copied. */
PHEMA_FALLIBLE phema_memory_profile_watch_file(struct phema_memory_profile *ledger,
                                               const char *path, struct phema_error *err);

/* As far as it is known by now. */
struct phema_stage_record phema_memory_profile_stage(struct phema_memory_profile *ledger,
                                                     enum phema_stage stage);

#endif
