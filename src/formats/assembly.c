// SPDX-License-Identifier: Apache-2.0
/* assembly.c - Tensors put together from pieces. Every element must lie in exactly one piece, or in
 * replicas of one. The check sweeps the pieces in the order of their starts in one dimension: only
 * pieces that lie side by side there can overlap. */
#include "assembly.h"

#include <stdio.h>
#include <stdlib.h>

#include "phema/sort.h"

/* A tensor while its pieces are added. */
struct assembled {
    struct phema_tensor tensor; /* as its first piece; shape NULL: known by its pieces alone */
    size_t last_source;
};

struct piece {
    struct phema_chunk chunk;
    bool is_empty;
    size_t number; /* of its tensor */
};

const char *format_index(struct phema_name_buffer *buffer, const uint64_t *index, unsigned rank)
{
    size_t used = (size_t)snprintf(buffer->text, sizeof(buffer->text), "[");
    unsigned d = 0;
    for (; d < rank && used + 32 < sizeof(buffer->text); d++)
        used += (size_t)snprintf(buffer->text + used, sizeof(buffer->text) - used, "%s%llu",
                                 d ? ", " : "", (unsigned long long)index[d]);
    (void)snprintf(buffer->text + used, sizeof(buffer->text) - used, "%s]", d < rank ? "..." : "");
    return buffer->text;
}

bool are_equal_sizes(const uint64_t *a, const uint64_t *b, unsigned rank)
{
    return rank == 0 || memcmp(a, b, rank * sizeof(*a)) == 0;
}

enum phema_status assembly_set_size(struct phema_tensor *tensor, struct phema_error *err)
{
    bool is_empty = false, fits = true;
    uint64_t n_elems = 1, bits = 0;
    for (unsigned d = 0; d < tensor->rank; d++)
        is_empty |= tensor->shape[d] == 0;
    for (unsigned d = 0; d < tensor->rank && !is_empty && fits; d++)
        fits = phema_size_mul(&n_elems, n_elems, tensor->shape[d]);
    if (!fits || !phema_size_mul(&bits, n_elems, 128))
        return phema_fail(err, PHEMA_ERR_FILE, "the size of the tensor overflows");
    tensor->n_elems = is_empty ? 0 : n_elems;
    tensor->size_bytes = tensor->n_elems * phema_dtype_bits(tensor->dtype) / 8;
    return PHEMA_OK;
}

/* ---- Coverage ---- */

enum phema_status assembly_check_inside(const struct phema_chunk *piece, const uint64_t *shape,
                                        unsigned rank, struct phema_error *err)
{
    for (unsigned d = 0; d < rank; d++) {
        if (piece->start[d] <= shape[d] && piece->size[d] <= shape[d] - piece->start[d])
            continue;
        struct phema_name_buffer start, size;
        return phema_fail(
            err, PHEMA_ERR_FILE, "the piece at %s of shape %s runs over the end of the tensor",
            format_index(&start, piece->start, rank), format_index(&size, piece->size, rank));
    }
    return PHEMA_OK;
}

static bool overlap(const struct phema_chunk *a, const struct phema_chunk *b, unsigned rank)
{
    for (unsigned d = 0; d < rank; d++)
        if (a->start[d] >= b->start[d] + b->size[d] || b->start[d] >= a->start[d] + a->size[d])
            return false;
    return true;
}

/* The dimension in which most pieces start after index 0: there, fewest pieces lie side by side. A
 * tensor split by columns is swept along its rows. */
static unsigned best_dimension(const struct phema_chunk *const *pieces, size_t n, unsigned rank)
{
    unsigned best = 0;
    size_t most = 0;
    for (unsigned d = 0; d < rank; d++) {
        size_t n_behind = 0;
        for (size_t i = 0; i < n; i++)
            n_behind += pieces[i]->start[d] > 0;
        if (n_behind > most) {
            most = n_behind;
            best = d;
        }
    }
    return best;
}

static int by_start(const void *a, const void *b, void *dimension)
{
    unsigned d = *(const unsigned *)dimension;
    uint64_t left = (*(const struct phema_chunk *const *)a)->start[d];
    uint64_t right = (*(const struct phema_chunk *const *)b)->start[d];
    return (left > right) - (left < right);
}

static enum phema_status check_disjoint(const struct phema_chunk **pieces, size_t n, unsigned rank,
                                        struct phema_error *err)
{
    if (rank == 0 && n > 1)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu pieces, expected one of a scalar", n);
    if (n < 2)
        return PHEMA_OK;
    unsigned d = best_dimension(pieces, n, rank);
    qsort_r(pieces, n, sizeof(const struct phema_chunk *), by_start, &d);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = pieces[i]->start[d] + pieces[i]->size[d];
        for (size_t j = i + 1; j < n && pieces[j]->start[d] < end; j++) {
            if (!overlap(pieces[i], pieces[j], rank))
                continue;
            struct phema_name_buffer left, right;
            return phema_fail(err, PHEMA_ERR_FILE, "the pieces at %s and %s overlap",
                              format_index(&left, pieces[i]->start, rank),
                              format_index(&right, pieces[j]->start, rank));
        }
    }
    return PHEMA_OK;
}

enum phema_status assembly_check(const struct phema_chunk *pieces, size_t n, unsigned rank,
                                 uint64_t n_elems, struct phema_error *err)
{
    const struct phema_chunk **filled = calloc(n + 1, sizeof(const struct phema_chunk *));
    if (!filled)
        return phema_fail_memory(err);
    size_t n_filled = 0;
    uint64_t n_covered = 0; /* meant for disjoint pieces: then at most n_elems */
    for (size_t i = 0; i < n; i++) {
        uint64_t n_held = 1; /* inside the tensor: only on the way to 0 the product can wrap */
        for (unsigned d = 0; d < rank; d++)
            n_held *= pieces[i].size[d];
        n_covered += n_held;
        if (n_held)
            filled[n_filled++] = &pieces[i];
    }
    enum phema_status status = check_disjoint(filled, n_filled, rank, err);
    free(filled);
    if (status || n_covered == n_elems)
        return status;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "its pieces hold %llu of its %llu elements, expected all",
                      (unsigned long long)n_covered, (unsigned long long)n_elems);
}

/* ---- Pieces of one tensor ---- */

/* Replaces numbers by a copy; NULL stays NULL. */
static bool keep_numbers(const uint64_t **numbers, struct phema_arena *arena, unsigned rank)
{
    uint64_t *copy = *numbers ? phema_arena_array(arena, rank, sizeof(*copy)) : NULL;
    bool is_kept = copy || !*numbers;
    if (copy)
        memcpy(copy, *numbers, rank * sizeof(*copy));
    *numbers = copy;
    return is_kept;
}

enum phema_status assembly_join(struct phema_tensor *tensor, struct phema_checkpoint *checkpoint,
                                const struct phema_chunk *pieces, size_t n, struct phema_error *err)
{
    struct phema_arena *arena = &checkpoint->chunk_arena;
    enum phema_status status = assembly_check(pieces, n, tensor->rank, tensor->n_elems, err);
    if (status || n == 0)
        return status;
    tensor->file = n == 1 ? pieces[0].file : 0;
    tensor->offset = n == 1 ? pieces[0].offset : 0;
    tensor->stride = n == 1 ? pieces[0].stride : NULL;
    if (n == 1)
        return PHEMA_OK;
    struct phema_chunk *chunks = phema_arena_array(arena, n, sizeof(*chunks));
    if (!chunks)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        chunks[i] = pieces[i];
        if (!keep_numbers(&chunks[i].start, arena, tensor->rank) ||
            !keep_numbers(&chunks[i].size, arena, tensor->rank) ||
            !keep_numbers(&chunks[i].stride, arena, tensor->rank))
            return phema_fail_memory(err);
    }
    tensor->chunks = chunks;
    tensor->n_chunks = n;
    return PHEMA_OK;
}

/* ---- Adding ---- */

static const char *label_of(const struct assembly *assembly, size_t file,
                            struct phema_name_buffer *shown)
{
    const char *label = phema_checkpoint_file_label(assembly->checkpoint, file);
    return phema_name_show(shown, label);
}

/* Checks a further piece of a tensor. */
static enum phema_status check_fit(const struct assembly *assembly, const struct assembled *known,
                                   const struct phema_tensor *piece, const uint64_t *shape,
                                   struct phema_error *err)
{
    const struct phema_tensor *first = &known->tensor;
    struct phema_name_buffer label, wanted, found;
    if (known->last_source == assembly->source)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "two tensors have this name, expected each name once");
    if (first->dtype != piece->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "is %s, but %s in file '%s'",
                          phema_dtype_name(piece->dtype), phema_dtype_name(first->dtype),
                          label_of(assembly, first->file, &label));
    if (first->rank != piece->rank)
        return phema_fail(err, PHEMA_ERR_FILE, "has %u dimensions, but %u in file '%s'",
                          piece->rank, first->rank, label_of(assembly, first->file, &label));
    if (!shape != !first->shape || (shape && !are_equal_sizes(shape, first->shape, piece->rank)))
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is stated to be a part of a tensor of shape %s, but of shape %s in file '%s'",
            shape ? format_index(&found, shape, piece->rank) : "unknown",
            first->shape ? format_index(&wanted, first->shape, piece->rank) : "unknown",
            label_of(assembly, first->file, &label));
    return PHEMA_OK;
}

static enum phema_status find_tensor(size_t *out, struct assembly *assembly,
                                     const struct phema_tensor *piece, const uint64_t *shape,
                                     struct phema_error *err)
{
    if (name_table_find(out, &assembly->names, piece->name, piece->name_size))
        return check_fit(assembly, &assembly->tensors[*out], piece, shape, err);
    *out = assembly->n_tensors;
    if (!phema_array_grow(&assembly->tensors, &assembly->tensors_capacity, *out,
                          sizeof(*assembly->tensors)) ||
        name_table_add(&assembly->names, piece->name, piece->name_size, *out) != NAME_ADDED)
        return phema_fail_memory(err);
    assembly->tensors[assembly->n_tensors++] = (struct assembled){.tensor = *piece};
    assembly->tensors[*out].tensor.shape = shape;
    return PHEMA_OK;
}

PHEMA_FALLIBLE assembly_add(struct assembly *assembly, const struct phema_tensor *piece,
                            const uint64_t *start, const uint64_t *shape, struct phema_error *err)
{
    size_t number = 0;
    enum phema_status status = find_tensor(&number, assembly, piece, shape, err);
    if (status)
        return fail_in_tensor(err, status, piece->name, piece->name_size);
    if (!start)
        start = phema_arena_array(&assembly->checkpoint->arena, piece->rank, sizeof(*start));
    if (!start || !phema_array_grow(&assembly->pieces, &assembly->pieces_capacity,
                                    assembly->n_pieces, sizeof(*assembly->pieces)))
        return phema_fail_memory(err);
    assembly->pieces[assembly->n_pieces++] = (struct piece){
        .chunk = {start, piece->shape, piece->stride, piece->file, piece->offset},
        .is_empty = !piece->n_elems,
        .number = number,
    };
    assembly->tensors[number].last_source = assembly->source;
    return PHEMA_OK;
}

/* ---- Listing ---- */

/* By tensor; then those with elements first, by start; then as they were added. */
static int compare_pieces(const void *a, const void *b, void *tensors)
{
    const struct piece *left = a, *right = b;
    const uint64_t *start = left->chunk.start, *other = right->chunk.start;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    if (left->is_empty != right->is_empty)
        return left->is_empty ? 1 : -1;
    for (unsigned d = 0; d < ((const struct assembled *)tensors)[left->number].tensor.rank; d++)
        if (start[d] != other[d])
            return start[d] < other[d] ? -1 : 1;
    return (left->chunk.file > right->chunk.file) - (left->chunk.file < right->chunk.file);
}

/* The smallest shape that holds all pieces. */
static enum phema_status find_shape(struct phema_tensor *tensor, struct phema_arena *arena,
                                    const struct piece *pieces, size_t n, struct phema_error *err)
{
    uint64_t *shape = phema_arena_array(arena, tensor->rank, sizeof(*shape));
    if (!shape)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < tensor->rank; d++) {
            uint64_t end = 0;
            if (!phema_size_add(&end, pieces[i].chunk.start[d], pieces[i].chunk.size[d]))
                return phema_fail(err, PHEMA_ERR_FILE, "the size of the tensor overflows");
            if (end > shape[d])
                shape[d] = end;
        }
    tensor->shape = shape;
    return PHEMA_OK;
}

/* Of the pieces without replicas, and without empty ones of a tensor that has elements. */
static enum phema_status drop_replicas(struct phema_chunk *kept, size_t *n_kept,
                                       const struct assembly *assembly, const struct piece *pieces,
                                       size_t n, unsigned rank, struct phema_error *err)
{
    kept[0] = pieces[0].chunk;
    *n_kept = 1;
    for (size_t i = 1; i < n && !pieces[i].is_empty; i++) {
        const struct phema_chunk *last = &kept[*n_kept - 1], *next = &pieces[i].chunk;
        if (!are_equal_sizes(last->start, next->start, rank)) {
            kept[(*n_kept)++] = *next;
            continue;
        }
        struct phema_name_buffer start, one, other, label;
        if (!are_equal_sizes(last->size, next->size, rank))
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "two parts begin at %s, of shape %s in file '%s' and of shape %s",
                format_index(&start, next->start, rank), format_index(&one, last->size, rank),
                label_of(assembly, last->file, &label), format_index(&other, next->size, rank));
    }
    return PHEMA_OK;
}

static enum phema_status join_pieces(struct phema_tensor *tensor, struct assembly *assembly,
                                     const struct piece *pieces, size_t n, struct phema_error *err)
{
    struct phema_arena *arena = &assembly->checkpoint->arena;
    if (n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu parts, expected %u at most", n, MAX_CHUNKS);
    size_t n_kept = 0;
    struct phema_chunk *kept = phema_arena_array(arena, n, sizeof(*kept));
    enum phema_status status = kept ? PHEMA_OK : phema_fail_memory(err);
    if (!status && !tensor->shape)
        status = find_shape(tensor, arena, pieces, n, err);
    if (!status)
        status = assembly_set_size(tensor, err);
    if (!status)
        status = drop_replicas(kept, &n_kept, assembly, pieces, n, tensor->rank, err);
    if (!status && n_kept > 1 && phema_dtype_bits(tensor->dtype) % 8)
        status = phema_fail(err, PHEMA_ERR_FILE, "parts of %s elements are not read",
                            phema_dtype_name(tensor->dtype));
    if (status)
        return status;
    status = assembly_join(tensor, assembly->checkpoint, kept, n_kept, err);
    if (!status)
        return PHEMA_OK;
    struct phema_name_buffer one, other;
    const char *first = label_of(assembly, kept[0].file, &one);
    return n_kept == 1 ? phema_fail_in(err, status, "file '%s'", first)
                       : phema_fail_in(err, status, "%zu files, '%s' to '%s'", n_kept, first,
                                       label_of(assembly, kept[n_kept - 1].file, &other));
}

PHEMA_FALLIBLE assembly_list(struct assembly *assembly, struct phema_error *err)
{
    const struct piece *pieces = assembly->pieces;
    phema_sort(assembly->pieces, assembly->n_pieces, sizeof(*pieces), compare_pieces,
               assembly->tensors);
    for (size_t at = 0, end = 0; at < assembly->n_pieces; at = end) {
        while (end < assembly->n_pieces && pieces[end].number == pieces[at].number)
            end++;
        struct phema_tensor *tensor = &assembly->tensors[pieces[at].number].tensor;
        enum phema_status status = join_pieces(tensor, assembly, &pieces[at], end - at, err);
        if (status)
            return fail_in_tensor(err, status, tensor->name, tensor->name_size);
        status = checkpoint_add_tensor(assembly->checkpoint, tensor, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

void assembly_clear(struct assembly *assembly)
{
    name_table_clear(&assembly->names);
    free(assembly->tensors);
    free(assembly->pieces);
}
