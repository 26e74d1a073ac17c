// SPDX-License-Identifier: Apache-2.0
/* tiling.c - see tiling.h. */
#include "tiling.h"

#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"

struct order {
    const struct phema_tensor_location *places; /* of the snapshot whose order is followed */
};

static int compare_places(const void *a, const void *b, void *context)
{
    const struct order *order = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct phema_tensor_location *left = &order->places[i], *right = &order->places[j];
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (i > j) - (i < j);
}

/* Decompressing goes forward alone, without an index; mapped files do not care. */
static size_t snapshot_to_follow(const struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].is_compressed &&
            !phema_checkpoint_can_seek(series->snapshots[k].checkpoint))
            return k;
    for (size_t k = 0; k < series->n; k++)
        if (series->snapshots[k].is_compressed)
            return k;
    return 0;
}

static enum phema_status check_order(const struct tiling *cut, size_t followed,
                                     struct phema_error *err)
{
    const struct phema_series *series = cut->series;
    for (size_t k = followed + 1; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (!snapshot->is_compressed || snapshot->places == series->snapshots[followed].places ||
            phema_checkpoint_can_seek(snapshot->checkpoint))
            continue;
        for (size_t i = 1; i < cut->n; i++)
            if (snapshot->places[cut->order[i - 1]].offset > snapshot->places[cut->order[i]].offset)
                return phema_fail(err, PHEMA_ERR_INPUTS,
                                  "%s: its tensors lie in another order than in %s, and neither "
                                  "file has a seek table to go back by; decompress one of them "
                                  "with zstd -d",
                                  snapshot->path, series->snapshots[followed].label);
    }
    return PHEMA_OK;
}

static const struct phema_tensor *tensor_at(const struct tiling *cut, size_t x)
{
    return &cut->series->tensors[cut->order[x]].tensor;
}

/* ---- Shares ---- */

/* A tensor of the order, or its end, and the first element of a block of it. */
struct position {
    size_t x;
    uint64_t elem;
};

static struct position position_of(const struct tiling *cut, uint64_t at_bytes)
{
    struct position position = {0, 0};
    for (; position.x < cut->n; position.x++) {
        const struct phema_tensor *tensor = tensor_at(cut, position.x);
        if (at_bytes < tensor->size_bytes) {
            unsigned bits = phema_dtype_bits(tensor->dtype);
            uint64_t elem = at_bytes / bits * 8 + at_bytes % bits * 8 / bits;
            position.elem = elem / BLOCK_ELEMS * BLOCK_ELEMS;
            return position;
        }
        at_bytes -= tensor->size_bytes;
    }
    return position;
}

/* part / n_parts of the bytes; no product is too large. */
static uint64_t bytes_before(uint64_t bytes, uint64_t part, uint64_t n_parts)
{
    return bytes / n_parts * part + bytes % n_parts * part / n_parts;
}

/* The order becomes that of the share. */
static void keep_share(struct tiling *cut, struct part_range share)
{
    uint64_t bytes = 0;
    for (size_t x = 0; x < cut->n; x++)
        bytes += tensor_at(cut, x)->size_bytes;
    cut->end_elem = cut->n ? tensor_at(cut, cut->n - 1)->n_elems : 0;
    if (share.n_parts < 2)
        return;
    struct position first = position_of(cut, bytes_before(bytes, share.part - 1, share.n_parts));
    struct position end = position_of(cut, bytes_before(bytes, share.part, share.n_parts));
    size_t end_x = end.elem ? end.x + 1 : end.x;
    cut->n = first.x < end_x && (first.x < end.x || first.elem < end.elem) ? end_x - first.x : 0;
    memmove(cut->order, cut->order + first.x, cut->n * sizeof(*cut->order));
    cut->first_elem = first.elem;
    cut->end_elem = end.elem ? end.elem : cut->n ? tensor_at(cut, cut->n - 1)->n_elems : 0;
}

uint64_t tiling_n_elems(const struct tiling *cut, size_t x)
{
    return (x + 1 == cut->n ? cut->end_elem : tensor_at(cut, x)->n_elems) -
           (x == 0 ? cut->first_elem : 0);
}

static uint64_t tiles_of(const struct tensor_run *stretch, size_t tile_elems)
{
    return stretch->n_elems / tile_elems + (stretch->n_elems % tile_elems != 0);
}

/* ---- Stretches ---- */

/* Whether tensor b lies right behind a in every snapshot. */
static bool follows(const struct phema_series *series, size_t a, size_t b)
{
    uint64_t size_bytes = series->tensors[a].tensor.size_bytes;
    const struct phema_tensor_location *table = NULL;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_tensor_location *places = series->snapshots[k].places;
        if (places == table)
            continue;
        table = places;
        if (places[a].stride || places[b].stride || places[a].parts || places[b].parts ||
            places[a].file != places[b].file || places[b].offset != places[a].offset + size_bytes)
            return false;
    }
    return true;
}

static bool are_alike(const struct phema_series *series, const struct tiling_kinds *kinds, size_t a,
                      size_t b)
{
    return series->tensors[a].tensor.dtype == series->tensors[b].tensor.dtype &&
           series->tensors[a].rule == series->tensors[b].rule &&
           kinds->dtypes[a] == kinds->dtypes[b] &&
           (!kinds->rule_of || kinds->rule_of[a] == kinds->rule_of[b]);
}

/* is_shared: [n_tensors] those with other names or places, which are put one by one */
static void join(struct tiling *cut, const struct tiling_kinds *kinds, const bool *is_shared)
{
    const struct phema_series *series = cut->series;
    struct tensor_run *last = NULL;
    for (size_t i = 0; i < cut->n; i++) {
        size_t tensor = cut->order[i];
        uint64_t n_elems = tiling_n_elems(cut, i);
        bool is_whole = n_elems == series->tensors[tensor].tensor.n_elems;
        uint64_t used = last ? last->n_elems % cut->tile_elems : 0; /* of the last tile */
        if (used && is_whole && n_elems <= cut->tile_elems - used &&
            i - last->first < MAX_STRETCH_TENSORS && !is_shared[cut->order[i - 1]] &&
            !is_shared[tensor] && are_alike(series, kinds, cut->order[i - 1], tensor) &&
            follows(series, cut->order[i - 1], tensor)) {
            last->n_elems += n_elems;
            continue;
        }
        last = &cut->stretches[cut->n_stretches++];
        *last = (struct tensor_run){
            .first = i, .start = i == 0 ? cut->first_elem : 0, .n_elems = n_elems};
    }
    cut->stretches[cut->n_stretches].first = cut->n;
    for (size_t s = 0; s < cut->n_stretches; s++) {
        const struct tensor_run *stretch = &cut->stretches[s];
        cut->stretches[s + 1].first_tile = stretch->first_tile + tiles_of(stretch, cut->tile_elems);
        cut->stretches[s + 1].position = stretch->position + stretch->n_elems;
    }
}

static enum phema_status make_stretches(struct tiling *cut, const struct tiling_kinds *kinds,
                                        struct phema_error *err)
{
    const struct phema_series *series = cut->series;
    bool *is_shared = calloc(series->n_tensors + 1, sizeof(*is_shared));
    cut->stretches = calloc(cut->n + 1, sizeof(*cut->stretches));
    if (!is_shared || !cut->stretches) {
        free(is_shared);
        return phema_fail_memory(err);
    }
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].same_as != i)
            is_shared[i] = is_shared[series->tensors[i].same_as] = true;
    join(cut, kinds, is_shared);
    free(is_shared);
    return PHEMA_OK;
}

/* ---- The cut ---- */

PHEMA_FALLIBLE tiling_make(struct tiling *cut, const struct phema_series *series,
                           const struct tiling_kinds *kinds, struct part_range share,
                           size_t tile_elems, uint64_t max_job_bytes, unsigned n_threads,
                           struct phema_error *err)
{
    *cut = (struct tiling){.series = series, .tile_elems = tile_elems};
    cut->order = calloc(series->n_tensors + 1, sizeof(*cut->order));
    if (!cut->order)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].same_as == i && series->tensors[i].tensor.n_elems)
            cut->order[cut->n++] = i;
    size_t followed = snapshot_to_follow(series);
    struct order order = {series->snapshots[followed].places};
    phema_sort(cut->order, cut->n, sizeof(*cut->order), compare_places, &order);
    bool is_compressed = series->snapshots[followed].is_compressed;
    enum phema_status status = is_compressed ? check_order(cut, followed, err) : PHEMA_OK;
    if (status)
        return status;
    keep_share(cut, share);
    for (size_t i = 0; i < cut->n; i++)
        cut->read_bytes += phema_dtype_bytes(tensor_at(cut, i)->dtype, tiling_n_elems(cut, i));
    status = make_stretches(cut, kinds, err);
    if (status)
        return status;

    /* whole jobs let go of whole stretches of files; several for each thread level out their ends
     */
    uint64_t n_tiles = tiling_n_tiles(cut);
    uint64_t mean_bytes = n_tiles ? cut->read_bytes / n_tiles + 1 : 1;
    cut->tiles_per_job = max_job_bytes / mean_bytes;
    uint64_t fair = n_tiles / (8ull * n_threads);
    if (cut->tiles_per_job > fair)
        cut->tiles_per_job = fair;
    if (cut->tiles_per_job == 0 || is_compressed) /* workers take turns tile by tile */
        cut->tiles_per_job = 1;
    cut->n_jobs = (n_tiles + cut->tiles_per_job - 1) / cut->tiles_per_job;
    return PHEMA_OK;
}

void tiling_clear(struct tiling *cut)
{
    free(cut->order);
    free(cut->stretches);
    *cut = (struct tiling){0};
}

uint64_t tiling_n_tiles(const struct tiling *cut)
{
    return cut->stretches[cut->n_stretches].first_tile;
}

uint64_t tiling_largest(const struct tiling *cut)
{
    uint64_t largest = 0;
    for (size_t s = 0; s < cut->n_stretches; s++)
        if (cut->stretches[s].n_elems > largest)
            largest = cut->stretches[s].n_elems;
    return largest < cut->tile_elems ? largest : cut->tile_elems;
}

uint64_t tiling_total(const struct tiling *cut)
{
    return cut->stretches[cut->n_stretches].position;
}

uint64_t tiling_tile_at(const struct tiling *cut, uint64_t position)
{
    size_t low = 0, high = cut->n_stretches; /* it is in one of [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (cut->stretches[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    const struct tensor_run *stretch = &cut->stretches[low];
    return stretch->first_tile + (position - stretch->position) / cut->tile_elems;
}

/* Mostly the stretch of the tile before, or the next one. */
static size_t stretch_of(const struct tiling *cut, uint64_t tile, size_t hint)
{
    const struct tensor_run *stretches = cut->stretches;
    size_t low = stretches[hint].first_tile <= tile ? hint : 0, high = cut->n_stretches;
    for (size_t end = low + 1; end <= low + 2 && end < high; end++)
        if (tile < stretches[end].first_tile)
            return end - 1;
    while (high - low > 1) { /* the tile is in one of [low, high) */
        size_t middle = low + (high - low) / 2;
        if (stretches[middle].first_tile <= tile)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct tile_range tiling_tile(const struct tiling *cut, uint64_t tile, size_t *hint)
{
    size_t s = stretch_of(cut, tile, *hint);
    *hint = s;
    const struct tensor_run *stretch = &cut->stretches[s];
    uint64_t done = (tile - stretch->first_tile) * cut->tile_elems;
    struct tile_range piece = {.tensor = cut->order[stretch->first],
                               .first = stretch->start + done,
                               .position = stretch->position + done,
                               .tensors = &cut->order[stretch->first],
                               .n_tensors = stretch[1].first - stretch->first};
    piece.n_elems = stretch->n_elems - done;
    if (piece.n_elems > cut->tile_elems)
        piece.n_elems = cut->tile_elems;
    return piece;
}
