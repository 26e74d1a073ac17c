// SPDX-License-Identifier: Apache-2.0
/* sample_positions.c - stratified choice of elements. Tensors are taken by name. Each gets some
 * elements, and large ones get more. The elements of a tensor are a row of blocks of neighbours:
 * the row is divided into equal strata and one block is drawn from each. The choice depends on
 * names, shapes, dtypes, the number of snapshots, and the frames of the first compressed one. */
#include "sparse_read.h"

#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"
#include "tensor_table.h"

/* Distances between snapshots are means over these. 2000 elements give an error of a few percent,
 * and a factor of 2 hardly changes the weights. */
#define WANTED_NUMBERS 2048

/* For all snapshots together; above 4096 snapshots fewer elements are sampled. */
#define MAX_VALUE_BYTES ((uint64_t)64 << 20)
#define LEAST_NUMBERS   64

/* Short runs cover more of the model, long runs need fewer reads. A short read is mostly latency,
 * so that a long run costs no more. */
#define SHORTEST_RUN 16
#define LONGEST_RUN  64
#define MAX_READS    32768 /* for all snapshots: some 40 ms from the page cache */

/* Half of the numbers are shared out equally, but no tensor needs more than a run for that. A share
 * begins and ends on bytes and on whole elements of any dtype. Above so many tensors, neighbours by
 * name share one. */
#define LEAST_SHARE          4
#define MOST_SHARES(numbers) ((numbers) / LEAST_SHARE * 3 / 4)

/* Where snapshots are compressed and have more numbers than this, blocks lie in this many windows.
 * A frame must be decompressed from its beginning, so that windows are short and begin with a frame
 * if that is found. Decompressing them costs 2 MiB of a snapshot in F32. */
#define WINDOWED_NUMBERS ((uint64_t)1 << 21)
#define N_WINDOWS        8
#define WINDOW_NUMBERS   ((uint64_t)1 << 16)
#define FRAME_ATTEMPTS   8

/* ---- The row of blocks ---- */

struct row {
    const struct phema_series *series;
    size_t *tensors; /* [n_tensors] averaged ones, by name; borrowed in a part of the row */
    size_t n_tensors;
    uint64_t block; /* numbers in a block; the last one of a tensor may have fewer */
    uint64_t n_numbers, n_blocks;
};

static uint64_t n_numbers_of(const struct row *row, size_t tensor)
{
    const struct phema_tensor *entry = &row->series->tensors[tensor].tensor;
    return entry->n_elems * phema_dtype_n_parts(entry->dtype); /* at most size_bytes of a C64 */
}

static uint64_t n_blocks_of(const struct row *row, size_t tensor)
{
    uint64_t n = n_numbers_of(row, tensor);
    return n / row->block + (n % row->block != 0);
}

/* Only the first name of a storage is listed. */
static enum phema_status list_tensors(struct row *row, const bool *is_skipped,
                                      struct phema_error *err)
{
    const struct phema_series *series = row->series;
    row->tensors = calloc(series->n_tensors + 1, sizeof(*row->tensors));
    bool *is_listed = calloc(series->n_tensors + 1, sizeof(*is_listed));
    if (!row->tensors || !is_listed) {
        free(is_listed);
        return phema_fail_memory(err);
    }
    size_t n = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].rule == PHEMA_RULE_AVERAGE && series->tensors[i].tensor.n_elems &&
            !(is_skipped && is_skipped[i]))
            row->tensors[n++] = i;
    phema_sort(row->tensors, n, sizeof(*row->tensors), tensor_names_compare, series->tensors);
    for (size_t i = 0; i < n; i++) {
        size_t storage = series->tensors[row->tensors[i]].same_as;
        if (!is_listed[storage])
            row->tensors[row->n_tensors++] = row->tensors[i];
        is_listed[storage] = true;
    }
    free(is_listed);
    return PHEMA_OK;
}

/* Shapes can claim any number of elements, since elements of a tensor may overlap. */
static enum phema_status count_numbers(struct row *row, struct phema_error *err)
{
    uint64_t ignored;
    bool fits = true;
    row->n_numbers = 0;
    for (size_t i = 0; fits && i < row->n_tensors; i++)
        fits = phema_size_add(&row->n_numbers, row->n_numbers, n_numbers_of(row, row->tensors[i]));
    if (!fits || !phema_size_mul(&ignored, row->n_numbers, WANTED_NUMBERS))
        return phema_fail(err, PHEMA_NO, "the shapes claim more elements than files hold");
    if (row->n_numbers == 0)
        return phema_fail(err, PHEMA_NO, "no tensor is averaged");
    return PHEMA_OK;
}

static void set_blocks(struct row *row, uint64_t block)
{
    row->block = block;
    row->n_blocks = 0;
    for (size_t i = 0; i < row->n_tensors; i++)
        row->n_blocks += n_blocks_of(row, row->tensors[i]);
}

/* ---- Drawing ---- */

/* A number below n: the finisher of splitmix64, pseudo-random and the same on every machine. */
static uint64_t draw(uint64_t number, uint64_t n)
{
    uint64_t x = (number + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    x ^= x >> 31;
    return n ? x % n : 0;
}

/* Start of stratum i of n equal ones of [low, high). n is small enough that nothing overflows. */
static uint64_t stratum_start(uint64_t low, uint64_t high, uint64_t n, uint64_t i)
{
    uint64_t size = high - low;
    return low + size / n * i + size % n * i / n;
}

/* One block from each of n strata of [low, high), which has at least n blocks; ascending. Other
 * seeds give other draws. */
static void draw_blocks(uint64_t *blocks, size_t n, uint64_t low, uint64_t high, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t first = stratum_start(low, high, n, i), end = stratum_start(low, high, n, i + 1);
        blocks[i] = first + draw(seed + i, end - first);
    }
}

/* The block of the first tensor in a frame of snapshot k that begins at this offset of the content.
 * fallback: the tensor of the row whose data are in the frame */
static uint64_t find_first_in_frame(const struct row *row, size_t k, uint64_t entry,
                                    uint64_t fallback_offset, uint64_t fallback)
{
    uint64_t found = fallback, found_offset = fallback_offset, start = 0;
    for (size_t i = 0; i < row->n_tensors; i++) {
        struct phema_tensor tensor = phema_series_tensor_in(row->series, k, row->tensors[i]);
        if (tensor.offset >= entry && tensor.offset < found_offset) {
            found = start;
            found_offset = tensor.offset;
        }
        start += n_blocks_of(row, row->tensors[i]);
    }
    return found;
}

/* The first block in the frame that holds this block in snapshot k. */
static uint64_t move_to_frame(const struct row *row, size_t k, uint64_t block)
{
    uint64_t start = 0; /* first block of the tensor */
    size_t i = 0;
    while (block >= start + n_blocks_of(row, row->tensors[i]))
        start += n_blocks_of(row, row->tensors[i++]);
    struct phema_tensor tensor = phema_series_tensor_in(row->series, k, row->tensors[i]);
    if (!tensor.is_compressed)
        return block;
    uint64_t size = phema_dtype_bytes(phema_dtype_of_parts(tensor.dtype), row->block);
    uint64_t entry = phema_checkpoint_entry(row->series->snapshots[k].checkpoint,
                                            tensor.offset + (block - start) * size);
    if (entry < tensor.offset)
        return find_first_in_frame(row, k, entry, tensor.offset, start);
    return start + (entry - tensor.offset + size - 1) / size;
}

/* Likewise, but all blocks lie in windows. */
static void draw_windows(uint64_t *blocks, size_t n, const struct row *row)
{
    const struct phema_snapshot *snapshots = row->series->snapshots;
    size_t k = 0; /* the first snapshot with frames, if there is one */
    while (k < row->series->n && !(snapshots[k].is_compressed && snapshots[k].checkpoint))
        k++;
    uint64_t size = WINDOW_NUMBERS / row->block;
    for (size_t w = 0; w < N_WINDOWS; w++) {
        uint64_t first = stratum_start(0, row->n_blocks, N_WINDOWS, w);
        uint64_t n_free = stratum_start(0, row->n_blocks, N_WINDOWS, w + 1) - first - size;
        uint64_t low = first + draw(n + w, n_free + 1);
        for (uint64_t attempt = 0; k < row->series->n && attempt < FRAME_ATTEMPTS; attempt++) {
            uint64_t block = first + draw(n + w + attempt * N_WINDOWS, n_free + 1);
            uint64_t moved = move_to_frame(row, k, block);
            if (moved < first || moved > first + n_free)
                continue;
            low = moved;
            break;
        }
        size_t from = (size_t)stratum_start(0, n, N_WINDOWS, w),
               end = (size_t)stratum_start(0, n, N_WINDOWS, w + 1);
        draw_blocks(blocks + from, end - from, low, low + size, from);
    }
}

/* ---- Runs ---- */

static void add_run(struct sample_positions *choice, size_t tensor, uint64_t first, uint64_t n,
                    uint64_t per_element)
{
    struct tensor_run *next = choice->runs + choice->n;
    if (choice->n && next[-1].tensor == tensor &&
        next[-1].first + next[-1].n == first / per_element) {
        next[-1].n += n / per_element;
    } else {
        *next =
            (struct tensor_run){tensor, first / per_element, n / per_element, choice->n_numbers, 0};
        choice->n++;
    }
    choice->n_numbers += (size_t)n;
}

static void add_blocks(struct sample_positions *choice, const struct row *row,
                       const uint64_t *blocks, size_t n)
{
    size_t next = 0;
    uint64_t start = 0; /* first block of the tensor */
    for (size_t i = 0; i < row->n_tensors && next < n; i++) {
        size_t tensor = row->tensors[i];
        uint64_t end = start + n_blocks_of(row, tensor), n_numbers = n_numbers_of(row, tensor);
        uint64_t per_element = phema_dtype_n_parts(row->series->tensors[tensor].tensor.dtype);
        for (; next < n && blocks[next] < end; next++) {
            uint64_t first = (blocks[next] - start) * row->block, left = n_numbers - first;
            add_run(choice, tensor, first, left < row->block ? left : row->block, per_element);
        }
        start = end;
    }
}

/* Draws n blocks of the row and gives their numbers the weight that they then have. */
static enum phema_status add_draw(struct sample_positions *choice, const struct row *row, size_t n,
                                  bool has_windows, struct phema_error *err)
{
    uint64_t *blocks = calloc(n, sizeof(*blocks));
    struct tensor_run *runs = realloc(choice->runs, (choice->n + n) * sizeof(*runs));
    choice->runs = runs ? runs : choice->runs;
    if (!blocks || !runs) {
        free(blocks);
        return phema_fail_memory(err);
    }
    if (has_windows)
        draw_windows(blocks, n, row);
    else
        draw_blocks(blocks, n, 0, row->n_blocks, choice->n_numbers);
    size_t first_run = choice->n, first_number = choice->n_numbers;
    add_blocks(choice, row, blocks, n);
    double weight = (double)row->n_numbers / (double)(choice->n_numbers - first_number);
    for (size_t i = first_run; i < choice->n; i++)
        choice->runs[i].weight = weight;
    free(blocks);
    return PHEMA_OK;
}

/* ---- Shares ---- */

struct shares {
    uint64_t wanted;  /* numbers in all */
    uint64_t longest; /* numbers of a run, up to the double of that */
    size_t n;         /* tensors, or groups of neighbours by name */
    uint64_t least;   /* numbers of each share */
};

static struct shares plan_shares(const struct row *row)
{
    size_t n = row->series->n_sampled_with ? row->series->n_sampled_with : row->series->n;
    uint64_t n_snapshots = n ? n : 1;
    uint64_t wanted = MAX_VALUE_BYTES / sizeof(double) / n_snapshots;
    struct shares shares = {.longest = SHORTEST_RUN, .n = row->n_tensors};
    shares.wanted = wanted > WANTED_NUMBERS  ? WANTED_NUMBERS
                    : wanted < LEAST_NUMBERS ? LEAST_NUMBERS
                                             : wanted;
    while (shares.longest < LONGEST_RUN &&
           n_snapshots * (shares.wanted / shares.longest) > MAX_READS)
        shares.longest *= 2;
    uint64_t by_reads = MAX_READS / n_snapshots / 2, by_numbers = MOST_SHARES(shares.wanted);
    uint64_t most = by_reads < by_numbers ? by_reads : by_numbers;
    if (shares.n > most)
        shares.n = most ? most : 1;
    shares.least = shares.wanted / 2 / shares.n / LEAST_SHARE * LEAST_SHARE;
    shares.least = shares.least > shares.longest ? shares.longest
                   : shares.least < LEAST_SHARE  ? LEAST_SHARE
                                                 : shares.least;
    return shares;
}

/* What small tensors leave of their shares goes to those behind them. A small model is read
 * whole. */
static enum phema_status add_shares(struct sample_positions *choice, const struct row *row,
                                    const struct shares *shares, struct phema_error *err)
{
    uint64_t shared = shares->wanted - shares->n * shares->least, seen = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < shares->n; i++) {
        size_t first = i * row->n_tensors / shares->n, end = (i + 1) * row->n_tensors / shares->n;
        struct row part = {
            .series = row->series, .tensors = row->tensors + first, .n_tensors = end - first};
        status = count_numbers(&part, err);
        if (status)
            return status;
        seen += part.n_numbers;
        uint64_t due = (i + 1) * shares->least + shared * seen / row->n_numbers;
        uint64_t numbers = due - (choice->n_numbers < due ? choice->n_numbers : due);
        if (row->n_numbers <= shares->wanted)
            numbers = row->n_numbers;
        numbers = numbers > shares->least ? numbers : shares->least; /* wanted of the part */
        numbers = numbers < part.n_numbers ? numbers : part.n_numbers;
        uint64_t n_runs = numbers > shares->longest ? numbers / shares->longest : 1;
        uint64_t length = numbers / n_runs / LEAST_SHARE * LEAST_SHARE;
        set_blocks(&part, length > LEAST_SHARE ? length : LEAST_SHARE);
        uint64_t n = part.n_blocks * numbers / part.n_numbers;
        status = add_draw(choice, &part, n ? (size_t)n : 1, false, err);
    }
    return status;
}

static enum phema_status choose_runs(struct sample_positions *choice, struct row *row,
                                     struct phema_error *err)
{
    struct shares shares = plan_shares(row);
    bool is_compressed = false;
    for (size_t k = 0; k < row->series->n; k++)
        is_compressed = is_compressed || row->series->snapshots[k].is_compressed;
    set_blocks(row, shares.longest);
    if (!is_compressed || row->n_blocks <= WINDOWED_NUMBERS / shares.longest)
        return add_shares(choice, row, &shares, err);
    uint64_t n = row->n_blocks * shares.wanted / row->n_numbers;
    return add_draw(choice, row, n ? (size_t)n : 1, true, err);
}

PHEMA_FALLIBLE sample_positions_make(struct sample_positions *choice,
                                     const struct phema_series *series, const bool *is_skipped,
                                     struct phema_error *err)
{
    *choice = (struct sample_positions){0};
    struct row row = {.series = series};
    enum phema_status status = list_tensors(&row, is_skipped, err);
    if (!status)
        status = count_numbers(&row, err);
    if (!status)
        status = choose_runs(choice, &row, err);
    free(row.tensors);
    if (status)
        sample_positions_clear(choice);
    return status;
}

void sample_positions_clear(struct sample_positions *choice)
{
    free(choice->runs);
    *choice = (struct sample_positions){0};
}
