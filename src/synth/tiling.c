// SPDX-License-Identifier: Apache-2.0
/* tiling.c - tensors to tiles and jobs; the parts of --part. */
#include "tiling.h"

#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"
#include "phema/writer.h"

/* context: the address of the places of the snapshot that determines the order */
static int compare_places(const void *a, const void *b, void *context)
{
    const struct phema_tensor_location *places = *(const struct phema_tensor_location **)context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct phema_tensor_location *left = &places[i], *right = &places[j];
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (i > j) - (i < j);
}

/* Without a seek table decompression only goes forward; mapped files are read in any order. */
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

static enum phema_status check_order(const struct tiling *tiling, size_t followed,
                                     struct phema_error *err)
{
    const struct phema_series *series = tiling->series;
    for (size_t k = followed + 1; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        if (!snapshot->is_compressed ||
            snapshot->locations == series->snapshots[followed].locations ||
            phema_checkpoint_can_seek(snapshot->checkpoint))
            continue;
        for (size_t i = 1; i < tiling->n; i++)
            if (snapshot->locations[tiling->order[i - 1]].offset >
                snapshot->locations[tiling->order[i]].offset)
                return phema_fail(err, PHEMA_ERR_INPUTS,
                                  "%s: its tensors lie in another order than in %s, and neither "
                                  "file has a seek table to go back by; decompress one of them "
                                  "with zstd -d",
                                  snapshot->path, series->snapshots[followed].label);
    }
    return PHEMA_OK;
}

static const struct phema_tensor *tensor_at(const struct tiling *tiling, size_t x)
{
    return &tiling->series->tensors[tiling->order[x]].tensor;
}

/* ---- Parts ---- */

/* The first element of a block: index of its tensor in the order, or the end of it. */
struct position {
    size_t x;
    uint64_t elem;
};

static struct position position_of(const struct tiling *tiling, uint64_t at_bytes)
{
    struct position position = {0, 0};
    for (; position.x < tiling->n; position.x++) {
        const struct phema_tensor *tensor = tensor_at(tiling, position.x);
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

/* Limits the order to the tensors of the part. */
static void keep_part(struct tiling *tiling, struct part_range part)
{
    uint64_t bytes = 0;
    for (size_t x = 0; x < tiling->n; x++)
        bytes += tensor_at(tiling, x)->size_bytes;
    tiling->end_elem = tiling->n ? tensor_at(tiling, tiling->n - 1)->n_elems : 0;
    if (part.n_parts < 2)
        return;
    struct position first =
        position_of(tiling, phema_writer_part_end(bytes, part.number - 1, part.n_parts));
    struct position end =
        position_of(tiling, phema_writer_part_end(bytes, part.number, part.n_parts));
    size_t end_x = end.elem ? end.x + 1 : end.x;
    tiling->n = first.x < end_x && (first.x < end.x || first.elem < end.elem) ? end_x - first.x : 0;
    memmove(tiling->order, tiling->order + first.x, tiling->n * sizeof(*tiling->order));
    tiling->first_elem = first.elem;
    tiling->end_elem = end.elem    ? end.elem
                       : tiling->n ? tensor_at(tiling, tiling->n - 1)->n_elems
                                   : 0;
}

uint64_t tiling_n_elems(const struct tiling *tiling, size_t x)
{
    return (x + 1 == tiling->n ? tiling->end_elem : tensor_at(tiling, x)->n_elems) -
           (x == 0 ? tiling->first_elem : 0);
}

/* ---- Tensor runs ---- */

/* Whether tensor b lies directly after a in every snapshot. */
static bool follows(const struct phema_series *series, size_t a, size_t b)
{
    uint64_t size_bytes = series->tensors[a].tensor.size_bytes;
    const struct phema_tensor_location *table = NULL;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_tensor_location *places = series->snapshots[k].locations;
        if (places == table)
            continue;
        table = places;
        if (!phema_location_is_plain(&places[a]) || !phema_location_is_plain(&places[b]) ||
            places[a].file != places[b].file || places[b].offset != places[a].offset + size_bytes)
            return false;
    }
    return true;
}

static bool are_alike(const struct phema_series *series, const struct tiling_kinds *kinds, size_t a,
                      size_t b)
{
    return series->tensors[a].tensor.dtype == series->tensors[b].tensor.dtype &&
           series->tensors[a].tensor.kind != PHEMA_KIND_SCALE &&
           series->tensors[b].tensor.kind != PHEMA_KIND_SCALE &&
           series->tensors[a].rule == series->tensors[b].rule &&
           kinds->dtypes[a] == kinds->dtypes[b] &&
           (!kinds->rule_of || kinds->rule_of[a] == kinds->rule_of[b]);
}

/* is_shared: [n_tensors] tensors with aliases, which are written one by one */
static void join(struct tiling *tiling, const struct tiling_kinds *kinds, const bool *is_shared)
{
    const struct phema_series *series = tiling->series;
    struct tensor_run *last = NULL;
    for (size_t i = 0; i < tiling->n; i++) {
        size_t tensor = tiling->order[i];
        uint64_t n_elems = tiling_n_elems(tiling, i);
        bool is_whole = n_elems == series->tensors[tensor].tensor.n_elems;
        uint64_t used = last ? last->n_elems % tiling->tile_elems : 0; /* of the last tile */
        if (used && is_whole && n_elems <= tiling->tile_elems - used &&
            i - last->first < MAX_RUN_TENSORS && !is_shared[tiling->order[i - 1]] &&
            !is_shared[tensor] && are_alike(series, kinds, tiling->order[i - 1], tensor) &&
            follows(series, tiling->order[i - 1], tensor)) {
            last->n_elems += n_elems;
            continue;
        }
        last = &tiling->tensor_runs[tiling->n_tensor_runs++];
        *last = (struct tensor_run){
            .first = i, .start = i == 0 ? tiling->first_elem : 0, .n_elems = n_elems};
    }
    tiling->tensor_runs[tiling->n_tensor_runs].first = tiling->n;
    for (size_t s = 0; s < tiling->n_tensor_runs; s++) {
        const struct tensor_run *tensor_run = &tiling->tensor_runs[s];
        tiling->tensor_runs[s + 1].first_tile = tensor_run->first_tile +
                                                tensor_run->n_elems / tiling->tile_elems +
                                                (tensor_run->n_elems % tiling->tile_elems != 0);
        tiling->tensor_runs[s + 1].position = tensor_run->position + tensor_run->n_elems;
    }
}

static enum phema_status make_tensor_runs(struct tiling *tiling, const struct tiling_kinds *kinds,
                                          struct phema_error *err)
{
    const struct phema_series *series = tiling->series;
    bool *is_shared = calloc(series->n_tensors + 1, sizeof(*is_shared));
    tiling->tensor_runs = calloc(tiling->n + 1, sizeof(*tiling->tensor_runs));
    if (!is_shared || !tiling->tensor_runs) {
        free(is_shared);
        return phema_fail_memory(err);
    }
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].same_as != i)
            is_shared[i] = is_shared[series->tensors[i].same_as] = true;
    join(tiling, kinds, is_shared);
    free(is_shared);
    return PHEMA_OK;
}

/* ---- Tiles and jobs ---- */

PHEMA_FALLIBLE tiling_make(struct tiling *tiling, const struct phema_series *series,
                           const struct tiling_kinds *kinds, struct part_range part,
                           size_t tile_elems, uint64_t max_job_bytes, unsigned n_threads,
                           struct phema_error *err)
{
    *tiling = (struct tiling){.series = series, .tile_elems = tile_elems};
    tiling->order = calloc(series->n_tensors + 1, sizeof(*tiling->order));
    if (!tiling->order)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].same_as == i && series->tensors[i].tensor.n_elems)
            tiling->order[tiling->n++] = i;
    size_t followed = snapshot_to_follow(series);
    const struct phema_tensor_location *places = series->snapshots[followed].locations;
    phema_sort(tiling->order, tiling->n, sizeof(*tiling->order), compare_places, &places);
    bool is_compressed = series->snapshots[followed].is_compressed;
    enum phema_status status = is_compressed ? check_order(tiling, followed, err) : PHEMA_OK;
    if (status)
        return status;
    keep_part(tiling, part);
    for (size_t i = 0; i < tiling->n; i++)
        tiling->read_bytes +=
            phema_dtype_bytes(tensor_at(tiling, i)->dtype, tiling_n_elems(tiling, i));
    status = make_tensor_runs(tiling, kinds, err);
    if (status)
        return status;

    /* A job releases mapped pages in long runs. Several jobs for each thread balance the load at
     * the end. */
    uint64_t n_tiles = tiling_n_tiles(tiling);
    uint64_t mean_bytes = n_tiles ? tiling->read_bytes / n_tiles + 1 : 1;
    tiling->tiles_per_job = max_job_bytes / mean_bytes;
    uint64_t fair = n_tiles / (8ull * n_threads);
    if (tiling->tiles_per_job > fair)
        tiling->tiles_per_job = fair;
    if (tiling->tiles_per_job == 0 || is_compressed) /* the decode order alternates tile by tile */
        tiling->tiles_per_job = 1;
    tiling->n_jobs = (n_tiles + tiling->tiles_per_job - 1) / tiling->tiles_per_job;
    return PHEMA_OK;
}

void tiling_clear(struct tiling *tiling)
{
    free(tiling->order);
    free(tiling->tensor_runs);
    *tiling = (struct tiling){0};
}

uint64_t tiling_n_tiles(const struct tiling *tiling)
{
    return tiling->tensor_runs[tiling->n_tensor_runs].first_tile;
}

uint64_t tiling_first_tile(const struct tiling *tiling, uint64_t job)
{
    uint64_t tile = job * tiling->tiles_per_job, n_tiles = tiling_n_tiles(tiling);
    return tile < n_tiles ? tile : n_tiles;
}

uint64_t tiling_largest(const struct tiling *tiling)
{
    uint64_t largest = 0;
    for (size_t s = 0; s < tiling->n_tensor_runs; s++)
        if (tiling->tensor_runs[s].n_elems > largest)
            largest = tiling->tensor_runs[s].n_elems;
    return largest < tiling->tile_elems ? largest : tiling->tile_elems;
}

uint64_t tiling_total(const struct tiling *tiling)
{
    return tiling->tensor_runs[tiling->n_tensor_runs].position;
}

uint64_t tiling_tile_at(const struct tiling *tiling, uint64_t position)
{
    size_t low = 0, high = tiling->n_tensor_runs; /* it is in one of [low, high) */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (tiling->tensor_runs[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    const struct tensor_run *tensor_run = &tiling->tensor_runs[low];
    return tensor_run->first_tile + (position - tensor_run->position) / tiling->tile_elems;
}

/* Usually the run of the tile before, or the next one. */
static size_t tensor_run_of(const struct tiling *tiling, uint64_t tile, size_t hint)
{
    const struct tensor_run *tensor_runs = tiling->tensor_runs;
    size_t low = tensor_runs[hint].first_tile <= tile ? hint : 0, high = tiling->n_tensor_runs;
    for (size_t end = low + 1; end <= low + 2 && end < high; end++)
        if (tile < tensor_runs[end].first_tile)
            return end - 1;
    while (high - low > 1) { /* the tile is in one of [low, high) */
        size_t middle = low + (high - low) / 2;
        if (tensor_runs[middle].first_tile <= tile)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct tile_range tiling_tile(const struct tiling *tiling, uint64_t tile, size_t *hint)
{
    size_t s = tensor_run_of(tiling, tile, *hint);
    *hint = s;
    const struct tensor_run *tensor_run = &tiling->tensor_runs[s];
    uint64_t done = (tile - tensor_run->first_tile) * tiling->tile_elems;
    struct tile_range range = {.tensor = tiling->order[tensor_run->first],
                               .dtype = tensor_at(tiling, tensor_run->first)->dtype,
                               .first = tensor_run->start + done,
                               .position = tensor_run->position + done,
                               .tensors = &tiling->order[tensor_run->first],
                               .n_tensors = tensor_run[1].first - tensor_run->first};
    range.n_elems = tensor_run->n_elems - done;
    if (range.n_elems > tiling->tile_elems)
        range.n_elems = tiling->tile_elems;
    return range;
}
