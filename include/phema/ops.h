/* ops.h - what verbs do: structs in, records out. Nothing here prints, or knows an option; the
 * command line, the processes of MPI and the library call it. */
#ifndef PHEMA_OPS_H
#define PHEMA_OPS_H

#include "phema/output.h"
#include "phema/synth.h"
#include "phema/team.h"
#include "phema/tensor_sets.h"
#include "phema/writer.h"

struct phema_request;
struct phema_prepared;
struct phema_synthesis;

/* ---- Who hears of the work ---- */

/* What a signal leaves behind while a run goes on. */
enum phema_kept {
    PHEMA_KEEPS_NOTHING,
    PHEMA_WRITES_NOTHING,
    PHEMA_KEEPS_TILES, /* the same command continues */
    PHEMA_KEEPS_PART   /* the same part is made again */
};

/* Most stages and waits are over before, and nothing is said of them. */
#define PHEMA_SILENT_S 1.0

/* Members may be NULL. They are called by the thread that called the function of ops. */
struct phema_listener {
    void *context;
    void (*note)(void *context, const char *sentence);   /* about the work */
    void (*detail)(void *context, const char *sentence); /* the same, which few want to know */
    void (*warn)(void *context,
                 const char *sentence); /* the result may be another than asked for */
    /* A stage begins that may take long; NULL: it has ended. Nothing else is called before. */
    void (*stage)(void *context, const char *name);
    void (*advance)(void *context, uint64_t done_bytes, uint64_t total_bytes); /* of the stage */
    /* Tiles are read, from begin to end. */
    void (*begin)(void *context, enum phema_kept kept);
    void (*report)(void *context, const struct phema_progress *state);
    void (*end)(void *context);
    /* The plan is made; outputs have their names and layout; they were made. */
    void (*planned)(void *context, const struct phema_request *request,
                    const struct phema_plan *plan);
    void (*named)(void *context, const struct phema_request *request,
                  const struct phema_prepared *prepared);
    void (*made)(void *context, const struct phema_synthesis *synthesis);
    /* All parts of an output are there, and it is about to be published. */
    void (*joined)(void *context, const struct phema_writer_join *join);
};

extern const struct phema_listener phema_nobody;

/* ---- What synth is asked for ---- */

/* The command in the provenance of an output, parsed again. */
struct phema_commands {
    void *context;
    /* Sets what the command asks for. handle: to be released.
     * path: of the output, which the command leaves out
     * PHEMA_ERR_FILE  it is no command of synth */
    enum phema_status (*read)(void *context, void **handle, struct phema_request *request,
                              const char *command, const char *path, struct phema_error *err);
    /* The first setting that determines bytes and differs from the caller's request, by the name
     * that the caller knows; NULL: none. */
    const char *(*find_difference)(struct phema_name_buffer *shown, void *context,
                                   const void *handle);
    void (*release)(void *handle);
};

struct phema_request {
    struct phema_plan_options plan;
    struct phema_outputs_options outputs;
    struct phema_synth_options synth;
    double max_error; /* of the prediction; NaN: no limit */
    const struct phema_commands *commands;
    const char *in_the_way; /* what helps where another file has the name of an output, as a clause;
                             * NULL: to replace it */
};

/* The plan, its outputs, and how it is carried out. */
struct phema_prepared {
    struct phema_plan *plan;
    struct phema_outputs outputs;
    struct phema_synth_options options;
};

/* name: "auto", "f64" or "f32" */
void phema_request_set_accumulator(struct phema_request *request, const char *name);

/* phema_plan_make in two stages that the listener hears of. */
PHEMA_FALLIBLE phema_plan_make_heard(struct phema_plan **out,
                                     const struct phema_plan_options *options,
                                     const struct phema_listener *listener,
                                     struct phema_error *err);

/* Call both in this order; the second again after phema_outputs_clear. Call phema_prepared_clear
 * after a failure as well.
 *   memory  NULL for none
 *   out     OUT, or a default for it
 * PHEMA_NO  an error is expected above max_error */
PHEMA_FALLIBLE phema_prepare_plan(struct phema_prepared *out, const struct phema_request *request,
                                  struct phema_memory_profile *memory,
                                  const struct phema_listener *listener, struct phema_error *err);
/* The plan in two steps, the second of which tells it to the listener. */
PHEMA_FALLIBLE phema_prepare_untold(struct phema_prepared *out, const struct phema_request *request,
                                    struct phema_memory_profile *memory,
                                    const struct phema_listener *listener, struct phema_error *err);
PHEMA_FALLIBLE phema_prepare_tell(const struct phema_prepared *prepared,
                                  const struct phema_request *request,
                                  const struct phema_listener *listener, struct phema_error *err);
PHEMA_FALLIBLE phema_prepare_outputs(struct phema_prepared *prepared,
                                     const struct phema_request *request, const char *out,
                                     const struct phema_listener *listener,
                                     struct phema_error *err);
void phema_prepared_clear(struct phema_prepared *prepared);

/* Notes that the newest time lacks snapshots, as while a training goes on, where the averages at the
 * time before have half the error or less. */
void phema_note_unfinished_time(const struct phema_prepared *prepared,
                                const struct phema_request *request,
                                const struct phema_listener *listener);

/* PHEMA_NO names the first target or rule whose predicted error is above the limit. */
PHEMA_FALLIBLE phema_plan_check_error(const struct phema_plan *plan, double max_error,
                                      struct phema_error *err);

/* Whether an output that exists is up to date: its provenance records the same snapshots, weights
 * and options. A failure says why it is not. */
PHEMA_FALLIBLE phema_output_compare(const struct phema_prepared *prepared, size_t output,
                                    const struct phema_request *request, struct phema_error *err);
/* Takes outputs that are up to date from the plan, keeps their names, and notes each.
 * PHEMA_ERR_OUTPUT  an output exists, differs and may not be replaced */
PHEMA_FALLIBLE phema_outputs_skip_existing(struct phema_prepared *prepared,
                                           const struct phema_request *request,
                                           const struct phema_listener *listener,
                                           struct phema_error *err);
/* Notes what other runs of --resume have left where the outputs are. */
void phema_note_leftovers(const struct phema_outputs *outputs,
                          const struct phema_listener *listener);

/* Adds the outputs in a directory that is none itself, by name; else the path, which is one or
 * nothing.
 *   paths  [*n] in the arena */
PHEMA_FALLIBLE phema_outputs_list(const char ***paths, size_t *n, struct phema_arena *arena,
                                  const char *path, const struct phema_checkpoint_options *options,
                                  struct phema_error *err);

/* ---- synth ---- */

/* The memory of each stage, as JSON lines in a file. */
struct phema_memory_report {
    struct phema_memory_profile *profile;
    const char *path; /* NULL: no file; borrowed */
    bool replaces;
    bool is_free; /* path is no other file of the run */
};

/* path: NULL for none. is_detailed: all stages are measured even so. */
PHEMA_FALLIBLE phema_memory_report_begin(struct phema_memory_report *out, const char *path,
                                         bool replaces, bool is_detailed, struct phema_error *err);
/* When all files of the run are known: PHEMA_ERR_OUTPUT where the path is one of them. */
PHEMA_FALLIBLE phema_memory_report_claim(struct phema_memory_report *report,
                                         const struct phema_claims *claims,
                                         const struct phema_outputs *outputs,
                                         struct phema_error *err);
/* Writes the file, also of a run that failed with status, which comes back unless writing fails. A run
 * that failed before its files were known replaces nothing. */
enum phema_status phema_memory_report_end(struct phema_memory_report *report,
                                          enum phema_status status, struct phema_error *err);

/* A run of synth: what it is asked for, and what came of it. */
struct phema_synthesis {
    struct phema_request request;
    const struct phema_team *team; /* NULL: this process is alone */
    bool skips_existing;
    bool publishes;                       /* the trainer resumes from the output */
    bool joins;                           /* the process that finds all parts done joins them */
    struct phema_memory_report *memory;   /* NULL: none; borrowed */
    const struct phema_listener *waiting; /* hears for which process a join waits; NULL: nobody */

    struct phema_prepared prepared;   /* outputs that were up to date are kept in it */
    struct phema_synth_result result; /* of a team, of all its processes */
    struct phema_tracker tracker;     /* where it publishes */
    char *tracker_path;
    char **paths; /* [n_paths] of all outputs, done or not, where processes share them */
    size_t n_paths;
    bool is_of_team;
};

/* The plan, and outputs that have to be made; of a team called by all processes. The caller clears
 * the synthesis, also after a failure. */
PHEMA_FALLIBLE phema_synthesis_prepare(struct phema_synthesis *synthesis,
                                       const struct phema_listener *listener,
                                       struct phema_error *err);
/* Makes the outputs, and joins parts. */
PHEMA_FALLIBLE phema_synthesis_run(struct phema_synthesis *synthesis,
                                   const struct phema_listener *listener, struct phema_error *err);
void phema_synthesis_clear(struct phema_synthesis *synthesis);

/* What processes can share of a run: parts, or whole outputs of a form that one process writes. */
uint64_t phema_count_shares(const struct phema_plan *plan, const struct phema_outputs *outputs);

/* The team of several processes; NULL: this one is alone. */
const struct phema_team *phema_team_of(const struct phema_team *team);
/* Called by all processes. Returns, in all of them, status and message of rank 0. */
enum phema_status phema_team_share_status(const struct phema_team *team, enum phema_status status,
                                          struct phema_error *err);

/* ---- verify ---- */

struct phema_verify_options {
    const char *out, *snapshots; /* the snapshots, where they have moved; NULL: as recorded */
    struct phema_checkpoint_options checkpoint;
    struct phema_synth_options synth; /* how it is recomputed: threads, io, memory, sample */
    const struct phema_team *team;    /* NULL: this process is alone */
    const struct phema_commands *commands;
};

struct phema_verifying {
    const struct phema_verify_options *options;
    struct phema_provenance *recorded;
    struct phema_request request;
    void *command; /* the recorded one */
    struct phema_prepared prepared;
    struct phema_arena memory; /* paths of SNAPSHOTS next to OUT */
    bool are_weights_same;
    struct phema_verification found;
    size_t *changed; /* [n_changed] snapshots whose data differ from those that OUT was made of */
    size_t n_changed;
    bool is_compared; /* found and changed are set, whatever the status */
};

/* Recomputes an output from its provenance and compares all bytes. The caller clears out, also after
 * a failure; it borrows the options.
 *   replay  hears of the plan that is made again; listener of all else
 * PHEMA_NO          they differ
 * PHEMA_ERR_INPUTS  snapshots have changed since */
PHEMA_FALLIBLE phema_verify(struct phema_verifying *out, const struct phema_verify_options *options,
                            const struct phema_listener *listener,
                            const struct phema_listener *replay, struct phema_error *err);
void phema_verifying_clear(struct phema_verifying *verifying);
bool phema_verification_is_equal(const struct phema_verification *found);

/* ---- join ---- */

struct phema_join_list {
    struct phema_writer_join **items; /* [n], NULL when committed */
    size_t n, capacity;
};

/* Failures of phema_writer_join_open. */
PHEMA_FALLIBLE phema_join_add(struct phema_join_list *list, const char *path,
                              const struct phema_writer_options *options, struct phema_error *err);
/* Publishes all. All are checked before the first is published. */
PHEMA_FALLIBLE phema_join_commit(struct phema_join_list *list,
                                 const struct phema_listener *listener, struct phema_error *err);
void phema_join_clear(struct phema_join_list *list);

/* ---- diff ---- */

struct phema_difference {
    const struct phema_tensor *a, *b; /* b NULL: only in a; a NULL: only in b; else in both */
    bool is_comparable;               /* in both, same shape, and both floating or same dtype */
    bool is_equal;                    /* every element: equal numbers; NaN equals NaN */
    uint64_t n_unequal;               /* elements */
    double max_abs;                   /* largest |a - b|; NaN or infinite where one side is */
    double rel_l2;                    /* |a - b| / |b|; 0 when equal, infinite when only b is 0 */
    long double sum_diff2, sum_b2;    /* the sums behind rel_l2: squares of doubles overflow one */
};

/* Of two checkpoints, tensor by tensor. Floats of any dtype are compared as numbers, also F16 with
 * F32, and fp8 times its scale; other dtypes are compared as bytes. */
struct phema_comparison {
    struct phema_difference *tensors; /* [n], in the order of a, then those only in b */
    size_t n;
    bool is_equal;          /* same names, comparable, all equal */
    double max_abs, rel_l2; /* over all comparable floating tensors */
    const char *prefix;     /* that only the names of one side have, and are paired without; NULL */
    bool is_prefix_of_a;
    struct phema_arena memory; /* of tensors that are compared as numbers */
};

/* The tensors point into a and b, which must outlive the comparison. Memory does not depend on the
 * size of the tensors.
 * PHEMA_ERR_FILE when data cannot be decompressed. */
PHEMA_FALLIBLE phema_compare(struct phema_comparison *out, const struct phema_checkpoint *a,
                             const struct phema_checkpoint *b,
                             const struct phema_listener *listener, struct phema_error *err);
void phema_comparison_clear(struct phema_comparison *comparison);

#endif
