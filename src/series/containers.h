/* containers.h - a container: one checkpoint that holds several snapshots, such as raw parameters
 * and averages of them. This is the one place that decides which tensors of a checkpoint form which
 * snapshot. Where a trainer keeps them is in docs/layouts.md. */
#ifndef SERIES_CONTAINERS_H
#define SERIES_CONTAINERS_H

#include "candidates.h"
#include "phema/series.h"

struct container;

/* The files of a container. */
struct container_source {
    const struct candidate *candidate;
    const struct phema_checkpoint *checkpoint;
    const size_t *n_tensors; /* [container->n] of each set */
    struct phema_arena *arena;
};

/* A tensor of a container. */
struct member {
    const char *set; /* which of the snapshots: "raw", "ema", "half_life_0p05"; not terminated */
    size_t set_size;
    const char *name; /* in the model: without prefix and suffix */
    size_t name_size;
    bool is_raw;
};

/* How a trainer names the tensors of a container. */
struct container_kind {
    const char *trainer;         /* for messages */
    const struct layout *layout; /* of directories with usual names that hold it; NULL: as named */
    const char *assumed; /* SPEC of averages whose profile is nowhere in the files; NULL: none is */
    double assumed_width;     /* sigma_rel, where that is a power function; else 0 */
    const char *to_fill;      /* the same with a word in place of the number that users set */
    const char *const *usual; /* [ends with NULL] SPECs that they set */
    /* Of averages whose keys have a part of the profile: the other part, and how to set it. */
    const char *assumed_rest, *rest_to_fill;
    /* False for tensors that take no part: optimizer, counters. */
    bool (*split)(struct member *out, const char *name, size_t size);
    /* Whether a checkpoint with such averages, or without them, is this trainer's for sure. */
    bool (*is_its)(const struct phema_checkpoint *checkpoint, bool has_averages, bool has_raw);
    bool copies_buffers;   /* into its averages: a tensor that equals the raw one is a buffer */
    bool may_lack_raw;     /* else averages without raw parameters, or of others, are an error */
    const char *counter;   /* a number inside that must be the time of the name; NULL: none */
    const char *n_updates; /* a number inside: updates of the average so far; NULL: none */
    /* phema_tensor_set_change; NULL: nothing beside the tensors says how they were averaged */
    enum phema_status (*change)(struct phema_set_change *out, const struct phema_tensor_set *set,
                                const char *directory, double sigma_rel, double time,
                                struct phema_arena *arena, struct phema_error *err);
    /* Sets the profiles that the files have; NULL: they have none. */
    enum phema_status (*read_profiles)(struct container *container,
                                       const struct container_source *source,
                                       struct phema_error *err);
};

/* One snapshot of a container. */
struct tensor_set {
    const char *name; /* follows the ':' in labels */
    bool is_raw;
    const char *spec; /* of the profile, where the file has it; NULL: sigma_rel or unknown */
    double sigma_rel; /* NaN: unknown, or in the spec */
    double time;      /* named time of its last update; NaN: that of the container */
};

struct container {
    const struct container_kind *kind;
    struct tensor_set
        *sets; /* [n] in the order of a series: by time, raw parameters, then widths */
    size_t n;
    bool has_raw;
    const struct tensor_set *reference; /* an average, whose tensors are averaged; NULL: none */
};

/* ---- containers.c ---- */

/* Lists the snapshots of a container of this kind.
 *   arena  keeps the sets
 * PHEMA_ERR_INPUTS    it is of another kind, raw parameters are missing, two averages are alike, or
 *                     the files of the trainer beside the tensors disagree with them
 * PHEMA_ERR_FILE      these files cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE container_list(struct container *out, const struct container_kind *kind,
                              struct phema_arena *arena, const struct candidate *candidate,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* Whether a checkpoint of this kind has the set. */
bool container_has_set(const struct container_kind *kind, const struct phema_checkpoint *checkpoint,
                       const char *set);

/* ---- container_kinds.c ---- */

/* The trainer that wrote the checkpoint, from the names of its tensors; NULL: not a container. */
const struct container_kind *container_recognise(const struct phema_checkpoint *checkpoint);

/* ---- trainer_files.c: files of trainers beside the tensors ---- */

/* Leaves out directories that their trainer has not finished. */
void leave_out_unfinished(struct candidate_list *candidates);

/* Whether the directory has a regular file or directory of this name. */
bool directory_has(const char *directory, const char *name);

/* state.json of flux_action: widths and times of its averages. Where it is missing, the names of
 * the sets have the widths. Failures as container_list. */
PHEMA_FALLIBLE flux_state_read(struct container *container, const struct container_source *source,
                               struct phema_error *err);

/* The change of flux_action: the folder has the width in its name, and state.json its entry. */
PHEMA_FALLIBLE flux_state_change(struct phema_set_change *out, const struct phema_tensor_set *set,
                                 const char *directory, double sigma_rel, double time,
                                 struct phema_arena *arena, struct phema_error *err);

/* Whether metadata.json says that Megatron wrote the directory. */
bool is_of_megatron(const char *directory);

#endif
