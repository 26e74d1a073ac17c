/* series.h - the snapshots of one training, which agree on names, shapes and dtypes of their
 * tensors. Opening a series reads headers alone; a sample of about 2000 elements is read on
 * request. */
#ifndef PHEMA_SERIES_H
#define PHEMA_SERIES_H

#include "phema/arena.h"
#include "phema/checksum.h"
#include "phema/claims.h"
#include "phema/error.h"
#include "phema/formats.h"
#include "phema/profile.h"

/* ---- Series ---- */

/* Where one tensor of one snapshot lies. */
struct phema_tensor_location {
    uint64_t offset;        /* absolute, before the snapshot's shift */
    const uint64_t *stride; /* [rank] in elements, NULL in C order */
    size_t file;
    const struct phema_chunk *parts; /* [n_parts], the checkpoint's; NULL: in one place */
    size_t n_parts;
};

struct phema_snapshot {
    char *path;        /* to open it; NULL in a manifest without files */
    char *label;       /* as listings name it: relative to SNAPSHOTS, ":KEY" behind it */
    char *key;         /* its subtree, of a file that holds several; NULL: the series' */
    double named_time; /* as its name or the manifest writes it: kimg for EDM2 */
    double time;       /* on the clock of its average: images for EDM2 */
    /* How it was averaged; label is its own. Of no meaning where kind is NULL. */
    struct phema_profile profile;
    double sigma_rel, gamma; /* of a power function, else NaN */
    const char *kind; /* "power", "ema", ...; NULL when unknown (weights given from outside) */
    const char *spec; /* the profile as text (spec.h); NULL likewise */
    double rounding;  /* relative rms error of its dtypes, 0 when unknown */
    struct phema_checkpoint *checkpoint; /* mapped, listing forgotten; NULL when never opened */
    bool is_checkpoint_shared;           /* with the snapshot before, which closes it */
    bool is_compressed;                  /* its data are decompressed as they are read */
    bool is_one_of_many;                 /* its file holds several snapshots */
    const struct phema_tensor_location
        *places;               /* [n_tensors]; tables are shared where files look alike */
    uint64_t shift;            /* added to every offset of places */
    char digest[PHEMA_DIGEST]; /* by what it is known again; "": not identified */
};

enum phema_rule {
    PHEMA_RULE_AVERAGE,
    PHEMA_RULE_COPY /* from the newest snapshot */
};

struct phema_series_tensor {
    struct phema_tensor tensor; /* of the newest snapshot; name without the subtree's prefix */
    enum phema_rule rule;
    const char *reason; /* for a copy: "integer", "bookkeeping", "buffer", "optimizer", "rule";
                         * "attribute" in a conversion, elsewhere those take no part */
    size_t same_as;     /* the first tensor of the same storage in every snapshot; itself if none */
};

/* Codes of a quantised tensor, and the scale that they are to be multiplied by. */
struct phema_quantised {
    const char *codes, *scale; /* names in the first file, as they are shown */
    enum phema_dtype dtype;    /* of the codes */
    size_t codes_at, scale_at; /* in the series' tensors; SIZE_MAX: takes no part */
    struct phema_quantised *next;
};

struct phema_tensor_total {
    size_t n_tensors;
    uint64_t n_elems, size_bytes;
};

struct phema_series {
    const char *layout; /* "edm2", "ema-pytorch", "posthoc-ema", "own", "names", "manifest",
                         * "lightning", "hf" */
    const char *unit;   /* "steps", "images", ... */
    char *root;         /* SNAPSHOTS as given */
    char *key;          /* the subtree that is averaged, "" for all; of several averages in a
                         * file, what holds them */
    struct phema_snapshot *snapshots; /* [n] by time, then by width */
    size_t n;
    struct phema_series_tensor *tensors; /* [n_tensors] in the newest's order */
    size_t n_tensors;
    /* tensors of the first file that take no part: attributes of objects, and all others */
    struct phema_tensor_total attributes, left_out;
    struct phema_quantised *scaled; /* of the first file */
    /* of a checkpoint alone: what became of its tensors [as it lists them], 1 + index in tensors,
     * or 0 when left out; NULL for a series */
    size_t *became;
    const char *unsampled; /* why files that say no more than names are not open; NULL: they are */
    char **notes;          /* [n_notes] sentences: what was recognised, left out, guessed */
    size_t n_notes;
    bool has_profiles;  /* that of every snapshot is known */
    double named_ahead; /* posthoc-ema: named times run this much ahead of the clock */
    double (*clock)(double named_time); /* NULL: times are as named */
    struct phema_arena memory;          /* names, shapes, places */
    /* What is read for it, and for a plan and its outputs: all files but directories. NULL: nothing
     * is known */
    struct phema_claims *claims;
};

struct phema_series_options {
    const char *snapshots;      /* directory, manifest.json or @list */
    const char *layout;         /* NULL or "auto": recognised */
    const char *name_regex;     /* NULL: the layout's own */
    const char *unit;           /* NULL: the layout's own */
    const double *input_sigmas; /* [n] by index */
    size_t n_input_sigmas;
    const char *const *input_profiles; /* [n] by index, one for all: SPECs where nothing says it */
    size_t n_input_profiles;
    uint64_t update_every;       /* 0: not given */
    double from, to;             /* named times, both included; NaN: not given */
    uint64_t every, last;        /* of the times, counted from the newest; 0: not given */
    const char *const *includes; /* [n] regular expressions on the names of tensors */
    size_t n_includes;
    const char *const *excludes;
    size_t n_excludes;
    const char *key;   /* subtree; NULL: guessed, "." : all */
    bool may_lack_key; /* key is that of --into where the snapshots have no such subtree */
    struct phema_checkpoint_options checkpoint;
    bool averages_buffers;    /* --buffers average */
    bool needs_no_profiles;   /* weights come from outside */
    bool is_alone;            /* snapshots is one checkpoint, whatever its name says: inspect */
    bool is_conversion;       /* and whatever is in it: all of its tensors, unless key says which */
    bool needs_no_tensors;    /* weights: files are opened only where they say more than names */
    bool may_be_sampled;      /* and beyond that where all can be, for phema_sample_read */
    uint64_t max_ram_bytes;   /* of anonymous memory; 0: no limit */
    const char *command;      /* the whole command line, for a message that completes it */
    const char *command_tail; /* what of it stands behind the verb */
};

PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err);
void phema_series_close(struct phema_series *series); /* takes NULL */

/* A time as names write it, on the clock of the averages. */
double phema_series_clock(const struct phema_series *series, double named_time);

/* The tensor as it lies in snapshot k: for phema_reader_read. */
struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i);

/* Of the files of a snapshot; 0 where it has none that are open. */
uint64_t phema_snapshot_bytes(const struct phema_snapshot *snapshot);

/* By what each snapshot is known again, for provenances, beside the size of its files: the XXH3 of
 * its tensors' names, dtypes and shapes and of some of their bytes. These are all of them where the
 * series has at most 262144 elements, else those of 64 windows of up to 1024 elements, evenly over
 * the model (16 windows of a compressed snapshot, where frames begin; none where it has
 * no seek table of small frames). PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_series_identify(struct phema_series *series, struct phema_error *err);

/* ---- Sample ---- */

/* The same elements of every snapshot, about 2000 and spread over all that is averaged: what says
 * how parameters move (phema_motion_fit). Which ones they are follows from the names and shapes of
 * the tensors and from the number of snapshots, whatever files they lie in, in whatever order;
 * where snapshots are compressed they lie closer together (docs/solver.md). Complex elements are
 * two numbers each. */
struct phema_sample {
    size_t n, n_elems;  /* snapshots, numbers of each */
    double *values;     /* [n x n_elems] row-major, row k is snapshot k of the series */
    double *rounding;   /* [n] rms of what rounding to the dtypes in the files leaves, relative to
                         * sqrt(mean_square) */
    double *sizes;      /* [n] rms of each snapshot's numbers, relative to sqrt(mean_square) */
    double mean_square; /* of the newest snapshot's numbers */
};

/* Reads every snapshot once, forward. Elements that are not finite in some snapshot, or beyond
 * 1e100, are left out of all of them. Memory: 16 KiB a snapshot, at most 64 MiB or so, and a
 * decoder where snapshots are compressed; all of it is given back on failure. PHEMA_NO there is
 * nothing to look at, and the message says why: no files, or not for every snapshot; compressed
 * without a seek table, or in large frames; no tensor is averaged; no element of use PHEMA_ERR_FILE
 * a file cannot be read, is corrupt, or was written to since it was opened PHEMA_ERR_RESOURCE  no
 * memory, or more than max_ram_bytes (0: no limit) would be needed */
PHEMA_FALLIBLE phema_sample_read(struct phema_sample *out, const struct phema_series *series,
                                 uint64_t max_ram_bytes, struct phema_error *err);
void phema_sample_clear(struct phema_sample *sample);

/* The mean of (x_i - x_j)^2 over the elements of snapshots i and j, relative to mean_square. */
double phema_sample_distance(const struct phema_sample *sample, size_t i, size_t j);

#endif
