// SPDX-License-Identifier: Apache-2.0
/* assembly.c - Tensors put together from parts in several files. Every element must lie in exactly
 * one part, or in replicas of one. */
#include "assembly.h"

#include <stdlib.h>

#include "chunks.h"
#include "phema/strbuf.h"

struct assembled {
    const uint64_t *shape; /* NULL: known by its parts alone */
    size_t first_part;
    size_t last_source;
};

struct part {
    struct phema_tensor tensor;
    const uint64_t *start; /* [rank] */
    size_t number;         /* of its tensor */
};

static bool are_equal(const uint64_t *a, const uint64_t *b, unsigned rank)
{
    return rank == 0 || memcmp(a, b, rank * sizeof(*a)) == 0;
}

static const char *label_of(const struct assembly *assembly, const struct part *part,
                            struct phema_name_buffer *shown)
{
    const char *label = phema_checkpoint_file_label(assembly->checkpoint, part->tensor.file);
    return phema_name_escape(shown, label, strlen(label));
}

/* ---- Adding ---- */

/* Checks a further part of a tensor. */
static enum phema_status check_fit(const struct assembly *assembly, const struct assembled *tensor,
                                   const struct phema_tensor *part, const uint64_t *shape,
                                   struct phema_error *err)
{
    const struct part *first = &assembly->parts[tensor->first_part];
    struct phema_name_buffer label, wanted, found;
    if (tensor->last_source == assembly->source)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "two tensors have this name, expected each name once");
    if (first->tensor.dtype != part->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "is %s, but %s in file '%s'",
                          phema_dtype_name(part->dtype), phema_dtype_name(first->tensor.dtype),
                          label_of(assembly, first, &label));
    if (first->tensor.rank != part->rank)
        return phema_fail(err, PHEMA_ERR_FILE, "has %u dimensions, but %u in file '%s'", part->rank,
                          first->tensor.rank, label_of(assembly, first, &label));
    if (!shape != !tensor->shape || (shape && !are_equal(shape, tensor->shape, part->rank)))
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is stated to be a part of a tensor of shape %s, but of shape %s in file '%s'",
            shape ? chunks_format_index(&found, shape, part->rank) : "unknown",
            tensor->shape ? chunks_format_index(&wanted, tensor->shape, part->rank) : "unknown",
            label_of(assembly, first, &label));
    return PHEMA_OK;
}

static enum phema_status find_tensor(size_t *out, struct assembly *assembly,
                                     const struct phema_tensor *part, const uint64_t *shape,
                                     struct phema_error *err)
{
    if (name_table_find(out, &assembly->names, part->name, part->name_size))
        return check_fit(assembly, &assembly->tensors[*out], part, shape, err);
    if (!phema_array_grow(&assembly->tensors, &assembly->tensors_capacity, assembly->n_tensors,
                          sizeof(*assembly->tensors)) ||
        name_table_add(&assembly->names, part->name, part->name_size, assembly->n_tensors) !=
            NAME_ADDED)
        return phema_fail_memory(err);
    assembly->tensors[assembly->n_tensors] =
        (struct assembled){.shape = shape, .first_part = assembly->n_parts};
    *out = assembly->n_tensors++;
    return PHEMA_OK;
}

PHEMA_FALLIBLE assembly_add(struct assembly *assembly, const struct phema_tensor *part,
                            const uint64_t *start, const uint64_t *shape, struct phema_error *err)
{
    size_t number = 0;
    enum phema_status status = find_tensor(&number, assembly, part, shape, err);
    if (status)
        return fail_in_tensor(err, status, part->name, part->name_size);
    if (!start)
        start = phema_arena_array(&assembly->checkpoint->arena, part->rank, sizeof(*start));
    if (!start || !phema_array_grow(&assembly->parts, &assembly->parts_capacity, assembly->n_parts,
                                    sizeof(*assembly->parts)))
        return phema_fail_memory(err);
    assembly->parts[assembly->n_parts++] =
        (struct part){.tensor = *part, .start = start, .number = number};
    assembly->tensors[number].last_source = assembly->source;
    return PHEMA_OK;
}

/* ---- Listing ---- */

/* By tensor; then those with elements first, by start; then as they were added. */
static int compare_parts(const void *a, const void *b)
{
    const struct part *left = *(const struct part *const *)a,
                      *right = *(const struct part *const *)b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    if (!left->tensor.n_elems != !right->tensor.n_elems)
        return left->tensor.n_elems ? -1 : 1;
    for (unsigned d = 0; d < left->tensor.rank; d++)
        if (left->start[d] != right->start[d])
            return left->start[d] < right->start[d] ? -1 : 1;
    return (left > right) - (left < right);
}

/* Removes replicas, and empty parts of a tensor that has elements. */
static enum phema_status drop_replicas(size_t *n, const struct part **parts,
                                       const struct assembly *assembly, struct phema_error *err)
{
    size_t n_kept = 1;
    for (size_t i = 1; i < *n; i++) {
        const struct part *kept = parts[n_kept - 1], *part = parts[i];
        unsigned rank = part->tensor.rank;
        if (!part->tensor.n_elems)
            continue;
        if (!are_equal(kept->start, part->start, rank)) {
            parts[n_kept++] = part;
            continue;
        }
        struct phema_name_buffer start, one, other, label;
        if (!are_equal(kept->tensor.shape, part->tensor.shape, rank))
            return phema_fail(err, PHEMA_ERR_FILE,
                              "two parts begin at %s, of shape %s in file '%s' and of shape %s",
                              chunks_format_index(&start, part->start, rank),
                              chunks_format_index(&one, kept->tensor.shape, rank),
                              label_of(assembly, kept, &label),
                              chunks_format_index(&other, part->tensor.shape, rank));
    }
    *n = n_kept;
    return PHEMA_OK;
}

/* The smallest shape that holds all parts. */
static enum phema_status find_shape(const uint64_t **out, struct phema_arena *arena,
                                    const struct part *const *parts, size_t n,
                                    struct phema_error *err)
{
    unsigned rank = parts[0]->tensor.rank;
    uint64_t *shape = phema_arena_array(arena, rank, sizeof(*shape));
    if (!shape)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < rank; d++) {
            uint64_t end = 0;
            if (!phema_size_add(&end, parts[i]->start[d], parts[i]->tensor.shape[d]))
                return phema_fail(err, PHEMA_ERR_FILE, "the size of the tensor overflows");
            if (end > shape[d])
                shape[d] = end;
        }
    *out = shape;
    return PHEMA_OK;
}

static enum phema_status set_size(struct phema_tensor *tensor, struct phema_error *err)
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

/* A copy of numbers that outlives the listing; NULL stays NULL. */
static bool keep_numbers(const uint64_t **numbers, struct phema_arena *arena, unsigned rank)
{
    if (!*numbers)
        return true;
    uint64_t *copy = phema_arena_array(arena, rank, sizeof(*copy));
    if (copy && rank)
        memcpy(copy, *numbers, rank * sizeof(*copy));
    *numbers = copy;
    return copy != NULL;
}

/* The chunks of n parts, which must lie inside the tensor. */
static enum phema_status make_chunks(struct phema_chunk **out, struct assembly *assembly,
                                     const struct part *const *parts, size_t n,
                                     const struct phema_tensor *tensor, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = assembly->checkpoint;
    struct phema_arena *arena = n > 1 ? &checkpoint->chunk_arena : &checkpoint->arena;
    struct phema_chunk *chunks = phema_arena_array(arena, n, sizeof(*chunks));
    if (!chunks)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct phema_tensor *part = &parts[i]->tensor;
        chunks[i] = (struct phema_chunk){.start = parts[i]->start,
                                         .size = part->shape,
                                         .stride = part->stride,
                                         .file = part->file,
                                         .offset = part->offset};
        if (!keep_numbers(&chunks[i].start, arena, part->rank) ||
            !keep_numbers(&chunks[i].size, arena, part->rank) ||
            !keep_numbers(&chunks[i].stride, arena, part->rank))
            return phema_fail_memory(err);
        enum phema_status status = chunks_check_inside(&chunks[i], tensor->shape, part->rank, err);
        struct phema_name_buffer label;
        if (status)
            return phema_fail_in(err, status, "file '%s'", label_of(assembly, parts[i], &label));
    }
    *out = chunks;
    return PHEMA_OK;
}

/* Names the files of parts that do not make up their tensor. */
static enum phema_status fail_in_files(struct phema_error *err, enum phema_status status,
                                       const struct assembly *assembly,
                                       const struct part *const *parts, size_t n)
{
    struct phema_name_buffer first, last;
    if (n == 1)
        return phema_fail_in(err, status, "file '%s'", label_of(assembly, parts[0], &first));
    return phema_fail_in(err, status, "%zu files, '%s' to '%s'", n,
                         label_of(assembly, parts[0], &first),
                         label_of(assembly, parts[n - 1], &last));
}

/* A tensor of one part is an ordinary tensor. Several chunks outlive the listing. */
static enum phema_status join_parts(struct phema_tensor *tensor, struct assembly *assembly,
                                    const struct part **parts, size_t n, struct phema_error *err)
{
    if (n > MAX_CHUNKS)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu parts, expected %u at most", n, MAX_CHUNKS);
    enum phema_status status = PHEMA_OK;
    if (!tensor->shape)
        status = find_shape(&tensor->shape, &assembly->checkpoint->arena, parts, n, err);
    if (!status)
        status = set_size(tensor, err);
    if (!status)
        status = drop_replicas(&n, parts, assembly, err);
    if (!status && n > 1 && phema_dtype_bits(tensor->dtype) % 8)
        status = phema_fail(err, PHEMA_ERR_FILE, "parts of %s elements are not read",
                            phema_dtype_name(tensor->dtype));
    if (status)
        return status;
    struct phema_chunk *chunks = NULL;
    status = make_chunks(&chunks, assembly, parts, n, tensor, err);
    if (status)
        return status;
    status = chunks_check(chunks, n, tensor->rank, tensor->n_elems, err);
    if (status)
        return fail_in_files(err, status, assembly, parts, n);
    if (n > 1) {
        tensor->chunks = chunks;
        tensor->n_chunks = n;
        tensor->stride = NULL;
        tensor->file = 0;
        tensor->offset = 0;
    }
    return PHEMA_OK;
}

static enum phema_status list_tensors(struct assembly *assembly, const struct part **parts,
                                      struct phema_error *err)
{
    for (size_t at = 0, end = 0; at < assembly->n_parts; at = end) {
        while (end < assembly->n_parts && parts[end]->number == parts[at]->number)
            end++;
        struct phema_tensor tensor = parts[at]->tensor;
        tensor.shape = assembly->tensors[parts[at]->number].shape;
        enum phema_status status = join_parts(&tensor, assembly, &parts[at], end - at, err);
        if (status)
            return fail_in_tensor(err, status, tensor.name, tensor.name_size);
        status = checkpoint_add_tensor(assembly->checkpoint, &tensor, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE assembly_list(struct assembly *assembly, struct phema_error *err)
{
    const struct part **parts = calloc(assembly->n_parts + 1, sizeof(const struct part *));
    if (!parts)
        return phema_fail_memory(err);
    for (size_t i = 0; i < assembly->n_parts; i++)
        parts[i] = &assembly->parts[i];
    qsort(parts, assembly->n_parts, sizeof(const struct part *), compare_parts);
    enum phema_status status = list_tensors(assembly, parts, err);
    free(parts);
    return status;
}

void assembly_clear(struct assembly *assembly)
{
    name_table_clear(&assembly->names);
    free(assembly->tensors);
    free(assembly->parts);
}
