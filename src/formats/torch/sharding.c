// SPDX-License-Identifier: Apache-2.0
/* sharding.c - The part of a tensor that one process has. A mesh is a grid of processes. Along each
 * of its dimensions a tensor is replicated, or the part so far is cut as torch.chunk does. Meshes
 * and placements stand in the specification of a DTensor, as torch 2.15 pickles it
 * (torch/distributed/tensor/placement_types.py, _dtensor_spec.py;
 * torch/distributed/device_mesh.py), or in metadata.pkl of torch_checkpointing 0.1.1. */
#include "format.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

#define TENSOR_CLASS(name) "torch.distributed.tensor." name
#define LAYOUT_CLASS(name) "torch.distributed._mesh_layout." name

static bool is_sequence(const struct pickle_node *node)
{
    return pickle_is(node, PICKLE_TUPLE) || pickle_is(node, PICKLE_LIST);
}

/* A place, which is a tuple or list of at most max integers of 0 or more. */
static bool holds_sizes(const struct pickle_node *node, size_t max)
{
    if (!is_sequence(node) || node->items.n > max)
        return false;
    for (size_t i = 0; i < node->items.n; i++)
        if (!pickle_is_count(node->items.at[i]))
            return false;
    return true;
}

static enum phema_status set_shape(struct sharding *out, struct phema_arena *arena,
                                   const struct pickle_node *sizes, struct phema_error *err)
{
    out->rank = (unsigned)sizes->items.n;
    out->shape = pickle_copy_sizes(arena, sizes);
    return out->shape ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- The specification of a DTensor ---- */

/* Processes along one dimension of the mesh: the product of the flat layout's shape. */
static enum phema_status read_axis(uint64_t *n, const struct pickle_node *axis,
                                   struct phema_error *err)
{
    const struct pickle_node *shape =
        pickle_is_record(axis, LAYOUT_CLASS("_FlatLayout")) ? pickle_field(axis, "shape") : NULL;
    if (!shape || !holds_sizes(shape, MAX_MESH_RANK))
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
    if (!pickle_is_number(processes->items.at[place], sharding->process))
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
    if (!is_sequence(axes) || axes->items.n > MAX_MESH_RANK || !pickle_is_count(process))
        return fail_expected(err, "a DeviceMesh with a _MeshLayout of at most 16 axes and a _rank");
    if (!holds_sizes(place, MAX_MESH_RANK) || place->items.n != axes->items.n)
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
    if (!pickle_is_count(dimension))
        return fail_expected(err, "Shard with a dim of 0 or more, or Replicate, as placements");
    *cut = (struct mesh_cut){cut->n, cut->part, true, (uint64_t)dimension->integer};
    return PHEMA_OK;
}

enum phema_status sharding_read(struct sharding *out, struct phema_arena *arena,
                                const struct pickle_tensor *view, struct phema_error *err)
{
    *out = (struct sharding){.n_cuts = 0};
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
    return status ? status : set_shape(out, arena, view->global_sizes, err);
}

/* ---- The list of metadata.pkl ---- */

struct pickle_node *metadata_value(const struct pickle_node *dict, const char *key)
{
    return pickle_is(dict, PICKLE_DICT) && dict->items.n <= 64 ? pickle_find(dict, key) : NULL;
}

/* The process's place in the list of at most max processes; SIZE_MAX: it is not there. */
static size_t place_in(const struct pickle_node *processes, uint64_t process, size_t max)
{
    if (!holds_sizes(processes, max))
        return SIZE_MAX;
    size_t n = processes->items.n;
    for (size_t k = 0; k < n; k++) {
        size_t i = (process + k) % n;
        if (pickle_is_number(processes->items.at[i], process))
            return i;
    }
    return SIZE_MAX;
}

static enum phema_status read_listed_placement(struct mesh_cut *cut,
                                               const struct pickle_node *placement,
                                               struct phema_error *err)
{
    const struct pickle_node *type = metadata_value(placement, "type");
    const struct pickle_node *dimension = metadata_value(placement, "dim");
    struct phema_name_buffer shown;
    if (pickle_is_text(type, "Replicate"))
        return PHEMA_OK;
    if (!pickle_is(type, PICKLE_TEXT))
        return fail_expected(err, "placements with a type");
    if (!pickle_is_text(type, "Shard"))
        return phema_fail(
            err, PHEMA_ERR_FILE, "the placement '%s' is not read, expected Shard or Replicate",
            phema_name_escape(&shown, (const char *)type->span.data, type->span.size));
    if (!pickle_is_count(dimension))
        return fail_expected(err, "a Shard with a dim of 0 or more");
    *cut = (struct mesh_cut){cut->n, cut->part, true, (uint64_t)dimension->integer};
    return PHEMA_OK;
}

/* Processes of the mesh are listed in C order of its shape. */
static enum phema_status read_listed_mesh(struct sharding *out, const struct pickle_node *mesh,
                                          size_t n_processes, struct phema_error *err)
{
    const struct pickle_node *shape = metadata_value(mesh, "mesh_shape");
    const struct pickle_node *processes = metadata_value(mesh, "mesh_data");
    size_t place = place_in(processes, out->process, n_processes);
    uint64_t n = 1;
    if (!holds_sizes(shape, MAX_MESH_RANK) || place == SIZE_MAX)
        return fail_expected(err,
                             "a mesh_spec with a mesh_shape, and the process in its mesh_data");
    out->n_cuts = shape->items.n;
    for (size_t i = out->n_cuts; i-- > 0;) {
        out->cuts[i].n = (uint64_t)shape->items.at[i]->integer;
        if (out->cuts[i].n == 0 || !phema_size_mul(&n, n, out->cuts[i].n))
            return fail_expected(err, "a mesh_shape of 1 or more in each dimension");
        out->cuts[i].part = place % out->cuts[i].n;
        place /= out->cuts[i].n;
    }
    if (n != processes->items.n)
        return fail_expected(err, "as many processes in mesh_data as mesh_shape says");
    return PHEMA_OK;
}

static enum phema_status check_dtype(const struct pickle_node *dtype,
                                     const struct phema_tensor *part, struct phema_error *err)
{
    const struct pickle_host host = {.options = NULL};
    struct pickle_global found = {0};
    char name[32];
    if (!pickle_is(dtype, PICKLE_TEXT) || dtype->span.size >= sizeof(name))
        return fail_expected(err, "a dtype");
    memcpy(name, dtype->span.data, dtype->span.size);
    name[dtype->span.size] = '\0';
    if (!pickle_global_find(&found, name, &host) || found.action != ACTION_DTYPE ||
        found.dtype != part->dtype)
        return phema_fail(err, PHEMA_ERR_FILE, "is %s, but metadata.pkl says another dtype",
                          phema_dtype_name(part->dtype));
    return PHEMA_OK;
}

static enum phema_status read_entry(struct sharding *out, struct phema_arena *arena,
                                    const struct pickle_node *value, size_t n_processes,
                                    const struct phema_tensor *part, struct phema_error *err)
{
    const struct pickle_node *data = metadata_value(value, "data");
    if (!pickle_is_text(metadata_value(value, "type"), "DTensorShardingMetadata") || !data)
        return fail_expected(err, "sharding_metadata of type DTensorShardingMetadata");
    const struct pickle_node *shape = metadata_value(data, "global_shape");
    const struct pickle_node *placements = metadata_value(data, "placements");
    enum phema_status status =
        read_listed_mesh(out, metadata_value(data, "mesh_spec"), n_processes, err);
    if (status)
        return status;
    if (!pickle_is(placements, PICKLE_LIST) || placements->items.n != out->n_cuts)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected %zu placements, one for each dimension of the mesh",
                          out->n_cuts);
    for (size_t i = 0; i < out->n_cuts && !status; i++)
        status = read_listed_placement(&out->cuts[i], placements->items.at[i], err);
    if (!status)
        status = check_dtype(metadata_value(data, "dtype"), part, err);
    if (status)
        return status;
    if (!holds_sizes(shape, PHEMA_MAX_RANK))
        return fail_expected(err, "a global_shape of at most 64 sizes");
    return set_shape(out, arena, shape, err);
}

enum phema_status sharding_read_listed(struct sharding *out, struct phema_arena *arena,
                                       const struct pickle_node *list, uint64_t process,
                                       size_t n_processes, const struct phema_tensor *part,
                                       struct phema_error *err)
{
    *out = (struct sharding){.process = process};
    size_t n = pickle_is(list, PICKLE_LIST) && list->items.n <= n_processes ? list->items.n : 0;
    for (size_t i = 0; i < n; i++) {
        const struct pickle_node *entry = list->items.at[i];
        if (place_in(metadata_value(entry, "ranks"), process, n_processes) == SIZE_MAX)
            continue;
        enum phema_status status = read_entry(
            out, arena, metadata_value(entry, "sharding_metadata"), n_processes, part, err);
        return status ? phema_fail_in(err, status, "metadata.pkl") : PHEMA_OK;
    }
    return phema_fail(err, PHEMA_ERR_FILE, "metadata.pkl does not say what process %llu has",
                      (unsigned long long)process);
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
    struct phema_name_buffer wanted, found;
    if (part->rank != rank || !are_equal_sizes(part->shape, size, rank))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the part of process %llu has shape %s, expected %s by its placements",
                          (unsigned long long)sharding->process,
                          format_index(&found, part->shape, part->rank),
                          format_index(&wanted, size, rank));
    *out = start;
    return PHEMA_OK;
}
