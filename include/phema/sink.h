/* sink.h - one output while it is written: tensors go in, in any order and from any thread; files
 * appear when all of them are whole. What form the output has is known here alone. */
#ifndef PHEMA_SINK_H
#define PHEMA_SINK_H

#include "phema/memory_profile.h"
#include "phema/output.h"

struct sink;

struct sink_options {
    bool replaces, syncs;
    unsigned n_threads;     /* for what is left when all tensors are written */
    uint64_t part, n_parts; /* 0 of 0: the output is written whole */
    const char *digest;     /* of what is written; borrowed while the sink is opened */
    bool drops_cache;
    bool verifies; /* what is put will be read back */
    bool resumes;  /* what an ended run has left of it is gone on with, and a journal is kept */
};

/* What a sink that resumes has found. */
enum sink_start_state {
    SINK_NEW,
    SINK_RESUMED, /* tensors are as the journal says, or are not: that is to be seen */
    SINK_STALE    /* the journal is of other snapshots, weights or options: begun anew */
};

/* Before anything is made: PHEMA_ERR_OUTPUT when a file exists that may not be replaced, or is one
 * of the snapshots. */
PHEMA_FALLIBLE sink_check(const struct phema_plan *plan, const struct phema_outputs *outputs,
                          size_t output, const struct sink_options *options,
                          struct phema_error *err);

/* Notes all names that the outputs have or may have in the claims of the series, for those who
 * write other files in the same run. 0 of 0 parts: the outputs are written whole. */
PHEMA_FALLIBLE sink_claim_names(const struct phema_plan *plan, const struct phema_outputs *outputs,
                                uint64_t part, uint64_t n_parts, struct phema_error *err);

/* PATH.json is there, PATH is not, and PATH.partial is: a run was killed after it had published the
 * first, which the next one may replace. */
bool sink_is_sidecar_left(const char *path);

/* Files that one output has open at a time, at most. */
size_t sink_n_files(const struct phema_outputs *outputs, bool resumes);

/* Whether outputs have checksums to recompute (zip files), and the memory that each of the threads
 * of sink_finish holds for that. */
bool sink_has_checksums(const struct phema_outputs *outputs);
uint64_t sink_checksum_thread_bytes(void);

/* All names that its files have or will have, for the ledger. */
PHEMA_FALLIBLE sink_watch_files(const struct phema_outputs *outputs, size_t output,
                                struct phema_memory_profile *ledger, struct phema_error *err);

PHEMA_FALLIBLE sink_open(struct sink **out, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, size_t output,
                         const struct sink_options *options, struct phema_error *err);

/* Whether a run that was killed had begun it: what it has left is taken over. */
bool sink_took_over(const struct sink *sink);

/* Elements [first, first + n) of tensor i, in C order and the output's dtype.
 *   sum  NULL, or what is put is added to it: it is the same whatever the order, and differs when
 *        a byte does. Without data what is there is added to it instead. */
PHEMA_FALLIBLE sink_put(struct sink *sink, size_t i, uint64_t first, uint64_t n, const void *data,
                        uint64_t *sum, struct phema_error *err);

/* The same of several tensors, one behind the other in data, elements counted from the start of the
 * first: those that lie behind each other in the output as well are written in one go.
 *   tensors  [n_tensors] their numbers; all are written as the same dtype */
PHEMA_FALLIBLE sink_put_run(struct sink *sink, const size_t *tensors, size_t n_tensors,
                            uint64_t first, uint64_t n, const void *data, uint64_t *sum,
                            struct phema_error *err);

/* When all tensors are written: by what the data of snapshots are known again, which the output has
 * in its header or text by now (phema_output_put_digests), goes to where that was written; that of
 * a part becomes known to join. sums  [output's n_digests] */
PHEMA_FALLIBLE sink_put_digests(struct sink *sink, const struct phema_hash_sum *sums,
                                struct phema_error *err);

/* When all of that is written: what can only be done then. */
PHEMA_FALLIBLE sink_finish(struct sink *sink, struct phema_error *err);

/* When it is finished: from here on sink_put and sink_put_run, with no data and no sum, read
 * back what they were given before, in the same pieces and by one thread; before that they take
 * what is there for given. Files leave the page cache first
 * where that can be. PHEMA_ERR_OUTPUT  a header is not what was written */
PHEMA_FALLIBLE sink_begin_verify(struct sink *sink, struct phema_error *err);
/* PHEMA_ERR_OUTPUT names a tensor that is not what was written, in pieces or compressed. */
PHEMA_FALLIBLE sink_end_verify(struct sink *sink, struct phema_error *err);

/* ---- For another run to go on with (sink_resume.c) ---- */

/* Not where elements are scattered over a copy: what lies between them cannot be made anew. */
bool sink_can_resume(const struct phema_plan *plan, const struct phema_outputs *outputs,
                     size_t output);
enum sink_start_state sink_start_state(const struct sink *sink);
/* Of a sink that resumes: how far it is. NULL for others. */
struct phema_writer_journal *sink_journal(const struct sink *sink);
/* The journal says something: what there is stays, whatever ends the run; or does not after all. */
void sink_keep(struct sink *sink, bool keeps);
bool sink_is_kept(const struct sink *sink);

/* Of the output, known for certain when it is finished. */
uint64_t sink_size_bytes(const struct sink *sink);

/* Publish and free; of a part: it is done, and join publishes. */
PHEMA_FALLIBLE sink_commit(struct sink *sink, struct phema_error *err);
void sink_abandon(struct sink *sink); /* takes NULL */

#endif
