// SPDX-License-Identifier: Apache-2.0
/* sharding.c - The specification of a DTensor, as torch 2.15 pickles it, and the box of a process
 * (torch/distributed/tensor/placement_types.py, _dtensor_spec.py;
 * torch/distributed/device_mesh.py). A mesh is a grid of processes. Along each of its dimensions a
 * tensor is replicated, or the part so far is cut as torch.chunk does. */
#include "torch/sharding.h"

#include "chunks.h"
#include "format.h"
#include "phema/strbuf.h"

#define TENSOR_CLASS(name) "torch.distributed.tensor." name
#define LAYOUT_CLASS(name) "torch.distributed._mesh_layout." name

static enum phema_status fail_expected(struct phema_error *err, const char *wanted)
{
    return phema_fail(err, PHEMA_ERR_FILE, "expected %s", wanted);
}

static bool is_sequence(const struct pickle_node *node)
{
    return pickle_is(node, PICKLE_TUPLE) || pickle_is(node, PICKLE_LIST);
}

static bool is_count(const struct pickle_node *node)
{
    return pickle_is(node, PICKLE_INT) && node->integer >= 0;
}

bool sharding_holds_sizes(const struct pickle_node *node, size_t max)
{
    if (!is_sequence(node) || node->items.n > max)
        return false;
    for (size_t i = 0; i < node->items.n; i++)
        if (!is_count(node->items.at[i]))
            return false;
    return true;
}

uint64_t *sharding_copy_sizes(struct phema_arena *arena, const struct pickle_node *node)
{
    uint64_t *sizes = phema_arena_array(arena, node->items.n, sizeof(*sizes));
    for (size_t i = 0; sizes && i < node->items.n; i++)
        sizes[i] = (uint64_t)node->items.at[i]->integer;
    return sizes;
}

/* ---- Specification ---- */

/* Processes along one dimension of the mesh: the product of the flat layout's shape. */
static enum phema_status read_axis(uint64_t *n, const struct pickle_node *axis,
                                   struct phema_error *err)
{
    const struct pickle_node *shape =
        pickle_is_record(axis, LAYOUT_CLASS("_FlatLayout")) ? pickle_field(axis, "shape") : NULL;
    if (!shape || !sharding_holds_sizes(shape, MAX_MESH_RANK))
        return fail_expected(err, "a DeviceMesh whose axes are _FlatLayout with a shape");
    *n = 1;
    for (size_t i = 0; i < shape->items.n; i++)
        if (!phema_size_mul(n, *n, (uint64_t)shape->items.at[i]->integer))
            return phema_fail(err, PHEMA_ERR_FILE, "the size of the DeviceMesh overflows");
    return PHEMA_OK;
}

/* The mesh lists its processes in C order. */
static enum phema_status check_process(const struct sharding *sharding,
                                       const struct pickle_node *processes, struct phema_error *err)
{
    uint64_t n = 1, place = 0;
    for (size_t i = 0; i < sharding->n_cuts; i++) {
        if (!phema_size_mul(&n, n, sharding->cuts[i].n))
            return phema_fail(err, PHEMA_ERR_FILE, "the size of the DeviceMesh overflows");
        place = place * sharding->cuts[i].n + sharding->cuts[i].part;
    }
    if (!is_sequence(processes) || processes->items.n != n)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a DeviceMesh with a _flatten_rank_map of %llu processes",
                          (unsigned long long)n);
    const struct pickle_node *found = processes->items.at[place];
    if (!is_count(found) || (uint64_t)found->integer != sharding->process)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the DeviceMesh has another process where it says that %llu is",
                          (unsigned long long)sharding->process);
    return PHEMA_OK;
}

static enum phema_status read_mesh(struct sharding *out, const struct pickle_node *mesh,
                                   struct phema_error *err)
{
    if (!pickle_is_record(mesh, "torch.distributed.device_mesh.DeviceMesh"))
        return fail_expected(err, "a DTensorSpec with a DeviceMesh");
    const struct pickle_node *layout = pickle_field(mesh, "_layout");
    const struct pickle_node *place = pickle_field(mesh, "_coordinate_on_dim");
    const struct pickle_node *process = pickle_field(mesh, "_rank");
    const struct pickle_node *axes =
        pickle_is_record(layout, LAYOUT_CLASS("_MeshLayout")) ? pickle_field(layout, "axes") : NULL;
    if (!is_sequence(axes) || axes->items.n > MAX_MESH_RANK || !is_count(process))
        return fail_expected(err, "a DeviceMesh with a _MeshLayout of at most 16 axes and a _rank");
    if (!sharding_holds_sizes(place, MAX_MESH_RANK) || place->items.n != axes->items.n)
        return fail_expected(err, "a DeviceMesh with the coordinates of its process");
    out->process = (uint64_t)process->integer;
    out->n_cuts = axes->items.n;
    for (size_t i = 0; i < out->n_cuts; i++) {
        enum phema_status status = read_axis(&out->cuts[i].n, axes->items.at[i], err);
        if (status)
            return status;
        out->cuts[i].part = (uint64_t)place->items.at[i]->integer;
        if (out->cuts[i].part >= out->cuts[i].n)
            return fail_expected(err, "coordinates of the process inside the DeviceMesh");
    }
    return check_process(out, pickle_field(mesh, "_flatten_rank_map"), err);
}

static enum phema_status read_placement(struct mesh_cut *cut, const struct pickle_node *placement,
                                        struct phema_error *err)
{
    if (pickle_is_record(placement, TENSOR_CLASS("placement_types.Replicate")))
        return PHEMA_OK;
    if (pickle_is_record(placement, TENSOR_CLASS("placement_types._StridedShard")))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the placement _StridedShard (FSDP over tensor parallelism) is not read; "
                          "save with torch.distributed.checkpoint");
    const struct pickle_node *dimension =
        pickle_is_record(placement, TENSOR_CLASS("placement_types.Shard"))
            ? pickle_field(placement, "dim")
            : NULL;
    if (!is_count(dimension))
        return fail_expected(err, "Shard with a dim of 0 or more, or Replicate, as placements");
    cut->is_shard = true;
    cut->dimension = (uint64_t)dimension->integer;
    return PHEMA_OK;
}

enum phema_status sharding_read(struct sharding *out, struct phema_arena *arena,
                                const struct pickle_tensor *view, struct phema_error *err)
{
    *out = (struct sharding){.rank = (unsigned)view->global_sizes->items.n};
    if (!pickle_is_record(view->spec, TENSOR_CLASS("_dtensor_spec.DTensorSpec")))
        return fail_expected(err, "a DTensorSpec as the _spec of a DTensor");
    enum phema_status status = read_mesh(out, pickle_field(view->spec, "mesh"), err);
    if (status)
        return status;
    const struct pickle_node *placements = pickle_field(view->spec, "placements");
    if (!is_sequence(placements) || placements->items.n != out->n_cuts)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %zu placements, one for each dimension of the DeviceMesh",
                          out->n_cuts);
    for (size_t i = 0; i < out->n_cuts && !status; i++)
        status = read_placement(&out->cuts[i], placements->items.at[i], err);
    if (status)
        return status;
    out->shape = sharding_copy_sizes(arena, view->global_sizes);
    return out->shape ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- Parts ---- */

/* Cuts [*start, *start + *size) into n parts of equal size, as far as they reach: the last ones are
 * smaller or empty. No sum overflows: n parts have at most size + n - 1 indices, and both numbers
 * come from integers of 63 bits. */
static void cut_part(uint64_t *start, uint64_t *size, const struct mesh_cut *cut)
{
    uint64_t most = *size / cut->n + (*size % cut->n != 0);
    uint64_t first = cut->part * most < *size ? cut->part * most : *size;
    *start += first;
    *size = *size - first < most ? *size - first : most;
}

enum phema_status sharding_find_part(const uint64_t **out, struct phema_arena *arena,
                                     const struct sharding *sharding,
                                     const struct phema_tensor *part, struct phema_error *err)
{
    unsigned rank = sharding->rank;
    uint64_t *start = phema_arena_array(arena, 2 * (size_t)rank, sizeof(*start));
    if (!start)
        return phema_fail_memory(err);
    uint64_t *size = start + rank;
    if (rank)
        memcpy(size, sharding->shape, rank * sizeof(*size));
    for (size_t i = 0; i < sharding->n_cuts; i++) {
        const struct mesh_cut *cut = &sharding->cuts[i];
        if (cut->is_shard && cut->dimension >= rank)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "is sharded along dimension %llu, but has %u dimensions",
                              (unsigned long long)cut->dimension, rank);
        if (cut->is_shard)
            cut_part(&start[cut->dimension], &size[cut->dimension], cut);
    }
    bool is_same = part->rank == rank;
    for (unsigned d = 0; d < rank && is_same; d++)
        is_same = part->shape[d] == size[d];
    struct phema_name_buffer wanted, found;
    if (!is_same)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the part of process %llu has shape %s, expected %s by its placements",
                          (unsigned long long)sharding->process,
                          chunks_format_index(&found, part->shape, part->rank),
                          chunks_format_index(&wanted, size, rank));
    *out = start;
    return PHEMA_OK;
}
