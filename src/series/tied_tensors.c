// SPDX-License-Identifier: Apache-2.0
/* tied_tensors.c - compares the raw parameters that have no average with those that have one. Each
 * has a digest of its bytes in all checkpoints so far. A tensor whose digest no tensor of the other
 * kind has is dropped, so that few are read as a whole: first after one window of the first file,
 * then after a few. */
#include "series_builder.h"

#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/file_reader.h"
#include "phema/mapped_file.h"
#include "phema/parallel.h"
#include "sparse_read.h"

/* Elements of a window, and of a read. */
#define WINDOW_ELEMS ((uint64_t)1024)
#define READ_ELEMS   ((uint64_t)64 << 10)

#define N_WINDOWS ((uint64_t)16)
#define ALL       UINT64_MAX

#define MOST_THREADS 8u

struct twin {
    const char *name; /* in the model */
    size_t size;
    const struct phema_tensor *listed; /* by the current file */
    bool is_averaged;
    bool changes, is_varied;                        /* between files; within the first one */
    char digest[PHEMA_DIGEST], first[PHEMA_DIGEST]; /* of all files; of windows of the first */
};

struct twins {
    struct series_builder *builder;
    struct twin *items; /* [n] */
    size_t n;
};

/* ---- Names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct twin *left = a, *right = b;
    return phema_bytes_compare(left->name, left->size, right->name, right->size);
}

static struct twin *find_name(const struct twins *twins, const char *name, size_t size)
{
    const struct twin wanted = {.name = name, .size = size};
    return twins->n ? bsearch(&wanted, twins->items, twins->n, sizeof(wanted), compare_names)
                    : NULL;
}

/* The raw parameters of the first file that would be averaged, by name. Those of the reference
 * are. */
static enum phema_status list_twins(struct twins *twins, struct phema_error *err)
{
    const struct phema_tensor_sets *sets = &twins->builder->sets;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(sets->checkpoint);
    size_t n = phema_checkpoint_n_tensors(sets->checkpoint);
    twins->items = phema_arena_array(&twins->builder->scratch, n + 1, sizeof(*twins->items));
    if (!twins->items)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct phema_set_member *member = &sets->members[i];
        struct phema_series_tensor entry = {.tensor = tensors[i]};
        entry.tensor.name = member->name;
        entry.tensor.name_size = member->name_size;
        if (!member->set || !member->set->is_raw)
            continue;
        tensor_filter_rule(&entry, &tensors[i], twins->builder->options->averages_buffers);
        if (entry.rule != PHEMA_RULE_AVERAGE || tensors[i].scaling || !tensors[i].n_elems ||
            tensors[i].dtype >= PHEMA_F6_E2M3)
            continue;
        char *name = phema_arena_copy(&twins->builder->scratch, member->name, member->name_size);
        if (!name)
            return phema_fail_memory(err);
        twins->items[twins->n++] = (struct twin){.name = name, .size = member->name_size};
    }
    qsort(twins->items, twins->n, sizeof(*twins->items), compare_names);
    for (size_t i = 0; i < n; i++) {
        const struct phema_set_member *member = &sets->members[i];
        struct twin *twin = member->set == sets->reference
                                ? find_name(twins, member->name, member->name_size)
                                : NULL;
        if (twin)
            twin->is_averaged = true;
    }
    return PHEMA_OK;
}

/* Finds the twins among the tensors of a file, and drops those that it lacks. */
static void locate_twins(struct twins *twins, const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    const struct trainer *trainer = twins->builder->scheme.trainer;
    struct split_name split;
    for (size_t t = 0; t < twins->n; t++)
        twins->items[t].listed = NULL;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        if (tensors[i].kind == PHEMA_KIND_ATTRIBUTE ||
            !trainer_split(&split, trainer, tensors[i].name, tensors[i].name_size) || !split.is_raw)
            continue;
        struct twin *twin = find_name(twins, split.name, split.name_size);
        /* elements of views may share bytes, so that there are more of them than a file holds */
        if (twin && (!tensors[i].stride ||
                     tensors[i].size_bytes <=
                         phema_file_span(phema_checkpoint_file(checkpoint, tensors[i].file)).size))
            twin->listed = &tensors[i];
    }
    size_t n = 0;
    for (size_t t = 0; t < twins->n; t++)
        if (twins->items[t].listed)
            twins->items[n++] = twins->items[t];
    twins->n = n;
}

/* ---- Digests of bytes ---- */

/* A read of a tensor, by one of the threads. */
struct window {
    const struct twin *twin;
    uint64_t first, n;
    bool is_varied; /* its elements are not all alike */
    char digest[PHEMA_DIGEST];
};

struct hashing {
    const struct phema_checkpoint *checkpoint;
    struct window *windows; /* [n] by twin */
    struct window **order;  /* [n] by place: compressed files are read forward */
    size_t n, n_parts;
    bool is_sparse;
};

/* Windows that are even over the tensor, or all of it.
 *   out  NULL: they are counted */
static size_t choose_windows(struct window *out, const struct twin *twin, uint64_t n_windows)
{
    uint64_t n_elems = twin->listed->n_elems;
    bool is_all = n_windows == ALL || n_elems <= n_windows * WINDOW_ELEMS;
    uint64_t size = is_all ? READ_ELEMS : WINDOW_ELEMS;
    uint64_t n = (n_elems + size - 1) / size, n_chosen = is_all ? n : n_windows;
    for (uint64_t w = 0; w < n_chosen && out; w++) {
        uint64_t at = is_all ? w : n_chosen == 1 ? n / 2 : w * (n - 1) / (n_chosen - 1);
        uint64_t left = n_elems - at * size;
        out[w] = (struct window){.twin = twin, .first = at * size, .n = left < size ? left : size};
    }
    return (size_t)n_chosen;
}

static enum phema_status hash_part(void *context, size_t index, struct phema_error *err)
{
    const struct hashing *hashing = context;
    struct phema_reader *reader = NULL;
    struct phema_hash *hash = NULL;
    uint8_t *scratch =
        aligned_alloc(PHEMA_INPUT_ALIGNMENT, (size_t)READ_ELEMS * 16 + PHEMA_INPUT_ROOM);
    enum phema_status status = scratch ? phema_hash_new(&hash, err) : phema_fail_memory(err);
    if (!status)
        status = hashing->is_sparse ? sparse_reader_open(&reader, hashing->checkpoint, err)
                                    : phema_reader_open(&reader, hashing->checkpoint, err);
    for (size_t w = index; w < hashing->n && !status; w += hashing->n_parts) {
        struct window *window = hashing->order[w];
        const struct phema_tensor *tensor = window->twin->listed;
        const uint8_t *data = NULL;
        size_t one = (size_t)phema_dtype_bytes(tensor->dtype, 1);
        size_t size = (size_t)phema_dtype_bytes(tensor->dtype, window->n);
        status = phema_reader_read(&data, reader, tensor, window->first, window->n, scratch, err);
        if (status)
            break;
        window->is_varied = memcmp(data, data + one, size - one) != 0;
        phema_hash_start(hash);
        phema_hash_add(hash, data, size);
        phema_hash_digest(window->digest, hash);
    }
    phema_reader_close(reader);
    phema_hash_free(hash);
    free(scratch);
    return status;
}

/* Adds what the windows of a twin hold to its digest. */
static void add_digests(struct twin *twin, struct phema_hash *hash, const struct window *windows,
                        size_t n, bool is_first_file, bool is_compared)
{
    char found[PHEMA_DIGEST];
    phema_hash_start(hash);
    phema_hash_add_u64(hash, twin->listed->dtype);
    phema_hash_add_u64(hash, twin->listed->rank);
    for (unsigned d = 0; d < twin->listed->rank; d++)
        phema_hash_add_u64(hash, twin->listed->shape[d]);
    for (size_t w = 0; w < n; w++) {
        twin->is_varied |= windows[w].is_varied;
        phema_hash_add(hash, windows[w].digest, sizeof(windows[w].digest));
    }
    phema_hash_digest(found, hash);
    if (is_compared && is_first_file)
        memcpy(twin->first, found, sizeof(found));
    if (is_compared && memcmp(twin->first, found, sizeof(found)) != 0)
        twin->changes = true;
    phema_hash_start(hash);
    phema_hash_add(hash, twin->digest, sizeof(twin->digest));
    phema_hash_add(hash, found, sizeof(found));
    phema_hash_digest(twin->digest, hash);
}

static int compare_places(const void *a, const void *b)
{
    const struct window *left = *(struct window *const *)a, *right = *(struct window *const *)b;
    const struct phema_tensor *x = left->twin->listed, *y = right->twin->listed;
    if (x->file != y->file || x->offset != y->offset)
        return x->file < y->file || (x->file == y->file && x->offset < y->offset) ? -1 : 1;
    return (left > right) - (left < right);
}

/* Reads windows of all twins in a file.
 *   is_compared  they show whether the tensors change between files */
static enum phema_status hash_twins(struct twins *twins, const struct phema_checkpoint *checkpoint,
                                    uint64_t n_windows, bool is_first_file, bool is_compared,
                                    struct phema_error *err)
{
    struct hashing hashing = {.checkpoint = checkpoint, .is_sparse = n_windows != ALL};
    struct phema_hash *hash = NULL;
    for (size_t t = 0; t < twins->n; t++)
        hashing.n += choose_windows(NULL, &twins->items[t], n_windows);
    hashing.windows = calloc(hashing.n + 1, sizeof(*hashing.windows));
    hashing.order = calloc(hashing.n + 1, sizeof(struct window *));
    enum phema_status status =
        hashing.windows && hashing.order ? phema_hash_new(&hash, err) : phema_fail_memory(err);
    for (size_t t = 0, w = 0; t < twins->n && !status; t++)
        w += choose_windows(hashing.windows + w, &twins->items[t], n_windows);
    if (!status) {
        for (size_t w = 0; w < hashing.n; w++)
            hashing.order[w] = &hashing.windows[w];
        qsort(hashing.order, hashing.n, sizeof(struct window *), compare_places);
        unsigned n_threads =
            phema_checkpoint_is_compressed(checkpoint) ? 1 : phema_parallel_threads();
        n_threads = n_threads < MOST_THREADS ? n_threads : MOST_THREADS;
        hashing.n_parts = hashing.n < n_threads ? hashing.n : n_threads;
        status = phema_parallel_try(hashing.n_parts, (unsigned)hashing.n_parts, hash_part, &hashing,
                                    err);
        sparse_evict(checkpoint);
    }
    for (size_t t = 0, w = 0; t < twins->n && !status; t++) {
        size_t n = choose_windows(NULL, &twins->items[t], n_windows);
        add_digests(&twins->items[t], hash, hashing.windows + w, n, is_first_file, is_compared);
        w += n;
    }
    phema_hash_free(hash);
    free(hashing.order);
    free(hashing.windows);
    return status;
}

/* ---- Groups of equal digests ---- */

/* Averaged ones come first. */
static int compare_digests(const void *a, const void *b)
{
    const struct twin *left = a, *right = b;
    int order = memcmp(left->digest, right->digest, sizeof(left->digest));
    if (order || left->is_averaged != right->is_averaged)
        return order ? order : (int)right->is_averaged - (int)left->is_averaged;
    return compare_names(a, b);
}

/* dtype and shape alone, then more and more of the bytes. */
static enum phema_status compare_file(struct twins *twins,
                                      const struct phema_checkpoint *checkpoint, bool is_first,
                                      struct phema_error *err)
{
    const uint64_t stages[] = {0, 1, N_WINDOWS, ALL};
    const struct phema_series_options *options = twins->builder->options;
    size_t n = options->compares_samples || options->needs_no_tensors ? 3 : 4;
    for (size_t s = is_first ? 0 : 2; s < n && twins->n; s++) {
        locate_twins(twins, checkpoint);
        enum phema_status status = hash_twins(twins, checkpoint, stages[s], is_first, s == 2, err);
        if (status)
            return status;
        /* without a tensor of the other kind that has its digest no twin is of use */
        size_t kept = 0;
        qsort(twins->items, twins->n, sizeof(*twins->items), compare_digests);
        for (size_t from = 0, to; from < twins->n; from = to) {
            const struct twin *first = &twins->items[from];
            for (to = from + 1; to < twins->n &&
                                memcmp(twins->items[to].digest, first->digest, PHEMA_DIGEST) == 0;)
                to++;
            bool is_mixed = first->is_averaged && !twins->items[to - 1].is_averaged;
            for (size_t t = from; t < to && is_mixed; t++)
                twins->items[kept++] = twins->items[t];
        }
        twins->n = kept;
        qsort(twins->items, kept, sizeof(*twins->items), compare_names);
    }
    return PHEMA_OK;
}

/* ---- All files ---- */

/* A file that is no snapshot, or not of this trainer, is found out later. */
static enum phema_status compare_others(struct twins *twins, struct phema_error *err)
{
    const struct series_builder *builder = twins->builder;
    const char *last = phema_checkpoint_path(builder->checkpoint);
    for (size_t i = 0; i < builder->candidates.n && twins->n; i++) {
        const struct candidate *candidate = &builder->candidates.items[i];
        struct phema_checkpoint *checkpoint = NULL;
        if (candidate->is_left_out || !candidate->path || strcmp(candidate->path, last) == 0)
            continue;
        last = candidate->path;
        enum phema_status status =
            phema_checkpoint_open(&checkpoint, last, &builder->options->checkpoint, err);
        if (!status && !phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance"))
            status = compare_file(twins, checkpoint, false, err);
        phema_checkpoint_close(checkpoint);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static int compare_ties(const void *a, const void *b)
{
    const struct tie *left = a, *right = b;
    int order = phema_bytes_compare((const char *)left->average.data, left->average.size,
                                    (const char *)right->average.data, right->average.size);
    return order ? order
                 : phema_bytes_compare((const char *)left->name.data, left->name.size,
                                       (const char *)right->name.data, right->name.size);
}

/* The rest of the twins by digest: in each group the first is averaged. */
static enum phema_status keep_ties(struct twins *twins, struct phema_error *err)
{
    struct tensor_filter *filter = &twins->builder->filter;
    const struct twin *average = NULL;
    filter->ties = phema_arena_array(&twins->builder->scratch, twins->n + 1, sizeof(*filter->ties));
    if (!filter->ties)
        return phema_fail_memory(err);
    qsort(twins->items, twins->n, sizeof(*twins->items), compare_digests);
    for (size_t t = 0; t < twins->n; t++) {
        const struct twin *twin = &twins->items[t];
        if (t == 0 || memcmp(twin->digest, average->digest, sizeof(twin->digest)) != 0)
            average = twin;
        if (!twin->is_averaged && (twin->changes || twin->is_varied))
            filter->ties[filter->n_ties++] =
                (struct tie){.name = {(const uint8_t *)twin->name, twin->size},
                             .average = {(const uint8_t *)average->name, average->size}};
    }
    qsort(filter->ties, filter->n_ties, sizeof(*filter->ties), compare_ties);
    return PHEMA_OK;
}

PHEMA_FALLIBLE tied_tensors_find(struct series_builder *builder, struct phema_error *err)
{
    struct twins twins = {.builder = builder};
    enum phema_status status = list_twins(&twins, err);
    if (!status)
        status = compare_file(&twins, builder->checkpoint, true, err);
    if (!status)
        status = compare_others(&twins, err);
    return status ? status : keep_ties(&twins, err);
}
