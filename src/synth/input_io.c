// SPDX-License-Identifier: Apache-2.0
/* input_io.c - mmap, read or past the page cache; prefetch ahead and release after
 * the workers. */
#include "input_io.h"

#include <stdlib.h>

#include "decode_order.h"
#include "phema/filesystem.h"
#include "phema/setting.h"

/* From Linux 6.18 on a fault maps the whole cached folio around it, up to 2 MiB. Pages that were
 * released come back with later ones, and have to be released again. */
#define FOLIO_BYTES ((uint64_t)2 << 20)
/* Data in a file that are no further apart form one extent. */
#define MAX_GAP_BYTES 4096
/* Prefetched by all workers together. */
#define MAX_PREFETCH_BYTES ((uint64_t)64 << 20)
/* Snapshots that are looked at for each job where nothing came from the disk lately. */
#define LOOKS_OF_JOB ((size_t)16)
/* Smaller snapshots are read in a few system calls. */
#define MIN_AHEAD_BYTES ((uint64_t)1 << 20)
/* Places of a file that are looked at in the page cache. Each of many parts reads a share of the file
 * and looks at a share of the places. */
#define MOST_LOOKS  64
#define LEAST_LOOKS 8
/* Descriptors of a process of many parts for other things than snapshots, at most. */
#define DEMAND_DESCRIPTORS 512

/* ---- Files that another process has found ---- */

struct demand {
    const struct run *run;
    bool keeps_descriptors;
    const struct phema_checkpoint *checkpoint; /* in visits of runs */
};

static bool are_all_open(const struct phema_checkpoint *checkpoint)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint); f++)
        if (!phema_file_is_open(phema_checkpoint_file(checkpoint, f)))
            return false;
    return true;
}

static enum phema_status demand_file(const struct demand *demand, size_t f, struct phema_error *err)
{
    return phema_checkpoint_demand(demand->checkpoint, f, demand->keeps_descriptors, err);
}

static enum phema_status demand_all(const struct demand *demand, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < phema_checkpoint_n_files(demand->checkpoint) && !status; f++)
        status = demand_file(demand, f, err);
    return status;
}

/* Whether some output needs data of the snapshot. */
static bool is_used(const struct phema_plan *plan, size_t k)
{
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        if (target->newest == k || target->solution.weights[k] != 0)
            return true;
        for (size_t r = 0; r < plan->n_rules; r++)
            if (target->ruled[r].weights && target->ruled[r].weights[k] != 0)
                return true;
    }
    return false;
}

static enum phema_status demand_run(void *context, const struct phema_run *run,
                                    struct phema_error *err)
{
    return demand_file(context, run->file, err);
}

/* Elements [first, first + n) of a tensor, and their scales. */
static enum phema_status demand_elements(struct demand *demand, const struct phema_tensor *tensor,
                                         uint64_t first, uint64_t n, struct phema_error *err)
{
    const struct phema_scaling *scaling = tensor->scaling;
    enum phema_status status =
        tensor->chunks ? phema_tensor_visit_runs(tensor, first, n, demand_run, demand, err)
                       : demand_file(demand, tensor->file, err);
    if (status || !scaling)
        return status;
    for (size_t c = 0; scaling->chunks && c < scaling->n_chunks && !status; c++)
        status = demand_file(demand, scaling->chunks[c].file, err);
    return status || scaling->chunks ? status : demand_file(demand, scaling->file, err);
}

static enum phema_status demand_part(struct demand *demand, const struct tiling *tiling, size_t k,
                                     struct phema_error *err)
{
    const struct phema_series *series = demand->run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < tiling->n && !status; x++) {
        struct phema_tensor tensor = phema_series_tensor_in(series, k, tiling->order[x]);
        uint64_t n = tiling_n_elems(tiling, x);
        if (n)
            status = demand_elements(demand, &tensor, x ? 0 : tiling->first_elem, n, err);
    }
    return status;
}

static enum phema_status demand_snapshots(struct demand *demand, struct phema_error *err)
{
    const struct run *run = demand->run;
    const struct phema_series *series = run->plan->series;
    struct tiling tiling = {.n = 0};
    enum phema_status status = run_make_tiling(&tiling, run, BLOCK_ELEMS, BLOCK_ELEMS, 1, err);
    for (size_t k = 0; k < series->n && !status; k++) {
        demand->checkpoint = series->snapshots[k].checkpoint;
        if (is_used(run->plan, k))
            status = run->outputs->has_new_scales ? demand_all(demand, err)
                                                  : demand_part(demand, &tiling, k, err);
    }
    tiling_clear(&tiling);
    return status;
}

PHEMA_FALLIBLE input_io_demand(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    struct demand demand = {.run = run};
    bool is_needed = run->options.is_repeated;
    for (size_t k = 0; k < series->n && !is_needed; k++)
        is_needed = !are_all_open(series->snapshots[k].checkpoint);
    if (!is_needed)
        return PHEMA_OK;
    uint64_t n = 0,
             limit = 0; /* of files that are open for reads through the page cache and past it */
    for (size_t k = 0; k < series->n; k++)
        n += phema_checkpoint_n_files(series->snapshots[k].checkpoint);
    demand.keeps_descriptors =
        run->options.is_repeated && phema_raise_fd_limit(2 * n + DEMAND_DESCRIPTORS, &limit);
    enum phema_status status = demand_snapshots(&demand, err);
    for (size_t j = 0; j < run->outputs->m && !status; j++) {
        demand.checkpoint = run->outputs->items[j].template;
        if (demand.checkpoint)
            status = demand_all(&demand, err);
    }
    return status;
}

/* ---- Opening ---- */

static size_t n_files_of(const struct phema_snapshot *snapshot)
{
    return phema_checkpoint_n_files(snapshot->checkpoint);
}

/* Large snapshots that are mostly not in the page cache are read past it, many requests at a time. */
static bool is_read_ahead(const struct run *run, const struct phema_snapshot *snapshot)
{
    if (run->options.io != PHEMA_IO_AUTO || run->maps_local)
        return false;
    uint64_t bytes = 0, cold_bytes = 0;
    uint64_t n_parts = run->options.n_parts ? run->options.n_parts : 1;
    uint64_t n_looks = n_parts < MOST_LOOKS / LEAST_LOOKS ? MOST_LOOKS / n_parts : LEAST_LOOKS;
    const struct phema_file *file = NULL;
    for (size_t f = 0; f < n_files_of(snapshot); f++) {
        const struct phema_file *next = phema_checkpoint_file(snapshot->checkpoint, f);
        if (!phema_file_is_open(next))
            continue;
        file = next;
        bytes += phema_file_span(file).size;
        cold_bytes += phema_file_is_cached(file, n_looks) ? 0 : phema_file_span(file).size;
    }
    return file && bytes >= MIN_AHEAD_BYTES && cold_bytes >= bytes / 2 &&
           phema_file_can_be_direct(file);
}

static enum phema_io choose(struct run *run, const struct phema_snapshot *snapshot, size_t f,
                            bool is_ahead)
{
    const struct phema_file *file = phema_checkpoint_file(snapshot->checkpoint, f);
    if (snapshot->is_compressed || !phema_file_is_open(file))
        return PHEMA_IO_MMAP;
    if (run->options.io == PHEMA_IO_MMAP && phema_file_is_uncached(file))
        return PHEMA_IO_READ;
    if (run->options.io != PHEMA_IO_AUTO)
        return run->options.io;
    if (is_ahead)
        return PHEMA_IO_DIRECT;
    const char *network = phema_network_filesystem(phema_file_path(file));
    if (network)
        run->result->filesystem = network;
    return run->maps_local && !network ? PHEMA_IO_MMAP : PHEMA_IO_READ;
}

/* Chooses for all files. Returns the number of descriptors that reading needs, one for each
 * worker's ring of requests included. */
static uint64_t choose_all(struct run *run)
{
    const struct phema_series *series = run->plan->series;
    enum phema_io *io = run->ios;
    uint64_t n_descriptors = 0;
    run->result->n_mapped = run->result->n_read = run->result->n_direct = 0;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        bool is_counted = !snapshot->is_checkpoint_shared;
        bool is_ahead = is_read_ahead(run, snapshot);
        for (size_t f = 0; f < n_files_of(snapshot); f++, io++) {
            bool is_open = phema_file_is_open(phema_checkpoint_file(snapshot->checkpoint, f));
            *io = choose(run, snapshot, f, is_ahead);
            run->result->n_mapped += is_counted && is_open && *io == PHEMA_IO_MMAP;
            run->result->n_read += is_counted && *io == PHEMA_IO_READ;
            run->result->n_direct += is_counted && *io == PHEMA_IO_DIRECT;
            n_descriptors += *io != PHEMA_IO_MMAP || (is_open && run->options.drops_cache);
        }
    }
    return run->result->n_direct ? n_descriptors + run->options.n_threads : n_descriptors;
}

PHEMA_FALLIBLE input_io_choose(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    size_t n_files = 0;
    for (size_t k = 0; k < series->n; k++)
        n_files += n_files_of(&series->snapshots[k]);
    run->ios = calloc(n_files + 1, sizeof(*run->ios));
    if (!run->ios)
        return phema_fail_memory(err);
    uint64_t others =
        2 * (uint64_t)run->outputs->m * sink_n_files(run->outputs, run->options.resumes) +
        PHEMA_OTHER_DESCRIPTORS;
    uint64_t n = choose_all(run), limit = 0;
    bool is_allowed = n == 0 || phema_raise_fd_limit(n + others, &limit);
    if (!is_allowed && run->options.io == PHEMA_IO_AUTO) {
        run->maps_local = true; /* mapping needs no descriptors */
        n = choose_all(run);
        is_allowed = n == 0 || phema_raise_fd_limit(n + others, &limit);
    }
    if (is_allowed)
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_RESOURCE,
        "%llu files of snapshots are to be read at once, which needs %llu descriptors, and this "
        "process may have %llu; raise ulimit -n, or use %smmap without %s, which needs none",
        (unsigned long long)n, (unsigned long long)(n + others), (unsigned long long)limit,
        phema_setting_equals(PHEMA_SET_IO), phema_setting_name(PHEMA_SET_DROP_CACHE));
}

static enum phema_status open_reader(struct run *run, size_t k, const enum phema_io *ios,
                                     struct phema_error *err)
{
    const struct phema_snapshot *snapshot = &run->plan->series->snapshots[k];
    struct phema_reading reading = {.io = run->options.io,
                                    .of_files = ios,
                                    .rereads = run->rereads,
                                    .drops_cache = run->options.drops_cache};
    enum phema_status status = phema_reader_open(&run->readers[k], snapshot->checkpoint, err);
    if (status)
        return status;
    status = phema_reader_use(run->readers[k], &reading, err);
    if (status)
        return status;
    for (size_t f = 0; f < n_files_of(snapshot); f++) { /* release the pages of the headers */
        const struct phema_file *file = phema_checkpoint_file(snapshot->checkpoint, f);
        phema_file_evict(file, 0, phema_file_span(file).size);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE input_io_open(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    run->readers = calloc(series->n + 1, sizeof(struct phema_reader *));
    if (!run->readers)
        return phema_fail_memory(err);
    const enum phema_io *ios = run->ios;
    bool is_compressed = false;
    for (size_t k = 0; k < series->n; k++) {
        enum phema_status status = open_reader(run, k, ios, err);
        if (status)
            return status;
        ios += n_files_of(&series->snapshots[k]);
        is_compressed = is_compressed || series->snapshots[k].is_compressed;
    }
    bool has_turns = is_compressed && !run->has_frame_jobs;
    return has_turns ? decode_order_new(&run->decode_order, series, err) : PHEMA_OK;
}

void input_io_close(struct run *run)
{
    for (size_t k = 0; run->readers && k < run->plan->series->n; k++)
        phema_reader_close(run->readers[k]);
    free(run->readers);
    run->readers = NULL;
    decode_order_free(run->decode_order);
    run->decode_order = NULL;
}

/* ---- Extents of files ---- */

struct extent {
    size_t file;
    uint64_t start, end; /* end 0: none yet */
};

/* The next extent of snapshot k's files from tile *t on. Tensors that do not lie in one run are
 * skipped. false: no extent begins before end_tile. */
static bool next_extent(struct extent *out, const struct run *run, uint64_t *t, uint64_t end_tile,
                        size_t k, size_t *hint)
{
    const struct phema_snapshot *snapshot = &run->plan->series->snapshots[k];
    *out = (struct extent){0, 0, 0};
    for (; *t < end_tile; (*t)++) {
        struct tile_range range = tiling_tile(&run->tiling, *t, hint);
        const struct phema_tensor_location *place = &snapshot->locations[range.tensor];
        if (!phema_location_is_plain(place))
            continue;
        uint64_t shift =
            phema_snapshot_shift(snapshot, &run->plan->series->tensors[range.tensor].tensor);
        uint64_t at = place->offset + shift + phema_dtype_bytes(range.dtype, range.first);
        bool follows = place->file == out->file && at >= out->end && at - out->end <= MAX_GAP_BYTES;
        if (out->end && !follows)
            return true;
        if (!out->end)
            *out = (struct extent){place->file, at, at};
        out->end = at + phema_dtype_bytes(range.dtype, range.n_elems);
    }
    return out->end != 0;
}

static bool is_cached(const struct run *run, size_t k, const struct extent *extent)
{
    return phema_reader_is_cached(run->readers[k], extent->file, extent->start);
}

/* Whether one of some snapshots is not in the page cache, where its tiles begin. Other tiles look at other
 * snapshots: a look at each of many would take as long as reading. */
static bool is_some_cold(const struct run *run, uint64_t first_tile, uint64_t end_tile)
{
    const struct phema_series *series = run->plan->series;
    size_t step = series->n / LOOKS_OF_JOB + 1;
    for (size_t k = first_tile % step; k < series->n; k += step) {
        struct extent extent;
        size_t hint = 0;
        uint64_t t = first_tile;
        if (!series->snapshots[k].is_compressed &&
            next_extent(&extent, run, &t, end_tile, k, &hint) && !is_cached(run, k, &extent))
            return true;
    }
    return false;
}

void input_io_prefetch(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_cold)
{
    const struct phema_series *series = run->plan->series;
    uint64_t share = MAX_PREFETCH_BYTES / run->budget.n_threads / series->n;
    if (!is_cold && !is_some_cold(run, first_tile, end_tile))
        return;
    for (size_t k = 0; k < series->n; k++) {
        if (series->snapshots[k].is_compressed)
            continue;
        struct extent extent;
        uint64_t left = share;
        size_t hint = 0;
        for (uint64_t t = first_tile; left && next_extent(&extent, run, &t, end_tile, k, &hint);) {
            uint64_t size = extent.end - extent.start;
            size = size < left ? size : left;
            left -= size;
            if (is_cold || !is_cached(run, k, &extent))
                phema_reader_prefetch(run->readers[k], extent.file, extent.start, size);
        }
    }
}

void input_io_evict(const struct run *run, uint64_t first_tile, uint64_t end_tile, bool is_last)
{
    const struct phema_series *series = run->plan->series;
    for (size_t k = 0; k < series->n; k++) {
        if (series->snapshots[k].is_compressed)
            continue;
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        struct extent extent;
        size_t hint = 0;
        for (uint64_t t = first_tile; next_extent(&extent, run, &t, end_tile, k, &hint);) {
            uint64_t size = phema_file_span(phema_checkpoint_file(checkpoint, extent.file)).size;
            uint64_t start = extent.start > FOLIO_BYTES ? extent.start - FOLIO_BYTES : 0;
            /* pages beyond the end are read next by this worker; after a job they are released as
             * well */
            uint64_t end = extent.end + (is_last ? FAULT_AROUND_BYTES : 0);
            phema_reader_release(run->readers[k], extent.file, start,
                                 (end < size ? end : size) - start);
        }
        for (uint64_t t = first_tile; t < end_tile; t++) {
            struct tile_range range = tiling_tile(&run->tiling, t, &hint);
            const struct phema_tensor_location *place =
                &series->snapshots[k].locations[range.tensor];
            if (phema_location_is_plain(place))
                continue;
            struct phema_tensor tensor = phema_series_tensor_in(series, k, range.tensor);
            phema_tensor_release(checkpoint, &tensor, range.first, range.n_elems);
        }
    }
}
