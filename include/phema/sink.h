/* sink.h - one output while it is written. Tensors arrive in any order and from any thread; the
 * files appear under their names when all of them are complete. */
#ifndef PHEMA_SINK_H
#define PHEMA_SINK_H

#include "phema/memory_profile.h"
#include "phema/output.h"

struct sink;

struct sink_options {
    bool replaces, syncs;
    unsigned n_threads;     /* of sink_finish */
    uint64_t part, n_parts; /* 0 of 0: this process writes the whole output */
    bool has_made_part;     /* phema_writer_part_options */
    const char *digest;     /* of everything that determines the bytes; borrowed by sink_open */
    bool drops_cache;
    bool verifies; /* the caller will reread what it writes: sink_begin_verify */
    bool resumes;  /* continue what an interrupted run left, and keep a journal */
    /* sink_finish adds the bytes that it has compressed; NULL: not counted */
    _Atomic uint64_t *finished_bytes;
};

/* What a sink that resumes has found. */
enum sink_start_state {
    SINK_NEW,
    SINK_RESUMED, /* files of an interrupted run; its journal must be checked against them */
    SINK_STALE    /* the journal is for other snapshots, weights or options: started again */
};

/* ---- Before the output is opened ---- */

/* PHEMA_ERR_OUTPUT  a file exists that may not be replaced, or is one of the snapshots */
PHEMA_FALLIBLE sink_check(const struct phema_plan *plan, const struct phema_outputs *outputs,
                          size_t output, const struct sink_options *options,
                          struct phema_error *err);

/* Adds all names that the outputs have or may have to the claims of the series. The other writers
 * of the run check their own files against these. 0 of 0 parts: the outputs are written whole. */
PHEMA_FALLIBLE sink_claim_names(const struct phema_plan *plan, const struct phema_outputs *outputs,
                                uint64_t part, uint64_t n_parts, struct phema_error *err);

/* Adds all names that the files of an output have or will have to the memory profile. */
PHEMA_FALLIBLE sink_watch_files(const struct phema_outputs *outputs, size_t output,
                                struct phema_memory_profile *profile, struct phema_error *err);

/* Files that one output has open at a time, at most. */
size_t sink_n_files(const struct phema_outputs *outputs, bool resumes);

/* Whether another run can resume the output. A copy cannot be resumed when its elements are
 * scattered or have several places: the bytes between them cannot be restored. */
bool sink_can_resume(const struct phema_plan *plan, const struct phema_outputs *outputs,
                     size_t output);

/* Memory that each thread of sink_finish holds [bytes].
 *   n_tasks  out: tasks that these threads share, at most; 0: sink_finish has nothing to do */
uint64_t sink_finish_thread_bytes(uint64_t *n_tasks, const struct phema_outputs *outputs,
                                  size_t n_tensors);

/* Compresses or checksums size bytes, as sink_finish does with an output that has_finish: for
 * measuring the speed. */
PHEMA_FALLIBLE sink_try_finish(const struct phema_outputs *outputs, const uint8_t *data,
                               size_t size, struct phema_error *err);

/* ---- Writing, in this order ---- */

PHEMA_FALLIBLE sink_open(struct sink **out, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, size_t output,
                         const struct sink_options *options, struct phema_error *err);

enum sink_start_state sink_start_state(const struct sink *sink);

/* Whether tiles that an earlier run has written must be reread, by sink_write without data and sum:
 * to be verified at the end, or for checksums. */
bool sink_needs_done_tiles(const struct sink *sink);

/* Whether partial files of a killed run were there, which this sink has taken over. */
bool sink_took_over(const struct sink *sink);

/* The journal of a sink that resumes; NULL for others. */
struct phema_writer_journal *sink_journal(const struct sink *sink);

/* With keeps the partial files and the journal stay however the run ends, so that another run can
 * resume. Without keeps sink_abandon removes them. No effect on a sink that does not resume. */
void sink_keep(struct sink *sink, bool keeps);
bool sink_is_kept(const struct sink *sink);

/* Writes n elements of one or several tensors, adjacent in data, in C order and the output's dtype.
 * Elements are counted from the start of the first tensor. Tensors that are adjacent in the output
 * too are written together.
 *   tensors  [n_tensors] indices; all are written as the same dtype
 *   data     NULL: reads the file instead, for sum
 *   sum      NULL, or the hash of the data and their place is added: the total is the same in any
 *            order, and differs when a byte does */
PHEMA_FALLIBLE sink_write(struct sink *sink, const size_t *tensors, size_t n_tensors,
                          uint64_t first, uint64_t n, const void *data, uint64_t *sum,
                          struct phema_error *err);

/* Writes the snapshot digests into the header or sidecar, which already reserve the space. They are
 * in the text of the output by now (phema_output_set_digests). A part hands them to join instead.
 * Comes after all tensors.  sums  [output's n_digests] */
PHEMA_FALLIBLE sink_write_digests(struct sink *sink, const struct phema_hash_sum *sums,
                                  struct phema_error *err);

/* Compresses the output, or recomputes its checksums. Comes after the digests. */
PHEMA_FALLIBLE sink_finish(struct sink *sink, struct phema_error *err);

/* Comes after sink_finish. From here on sink_write, without data and sum, compares the file with what was written. The caller repeats the same ranges from one thread.
 * Before that, existing data are assumed to be correct. Files leave the page cache first where that
 * is possible.
 * PHEMA_ERR_OUTPUT  a header is not what was written */
PHEMA_FALLIBLE sink_begin_verify(struct sink *sink, struct phema_error *err);
/* PHEMA_ERR_OUTPUT  a tensor, plain or compressed, is not what was written; the message names it */
PHEMA_FALLIBLE sink_end_verify(struct sink *sink, struct phema_error *err);

/* Size of the output; exact after sink_finish. */
uint64_t sink_size_bytes(const struct sink *sink);

/* Syncs file i < sink_n_synced_files early, after all else: several files can be synced at once.
 * The commit reports a failure. Does nothing where the output is not to be synced. */
size_t sink_n_synced_files(const struct sink *sink);
void sink_sync_file(struct sink *sink, size_t i);

/* The commit leaves the directory of the output unsynced: the caller syncs it once for several
 * outputs. false, and no effect, where a later step relies on the name: a sidecar, a journal, an
 * old directory, the marker of a part. */
bool sink_leave_entry(struct sink *sink);

/* Publishes the output and frees the sink. A part becomes complete, and join publishes it. */
PHEMA_FALLIBLE sink_commit(struct sink *sink, struct phema_error *err);
void sink_abandon(struct sink *sink); /* takes NULL */

#endif
