// SPDX-License-Identifier: Apache-2.0
/* torch_tensors.c - the walk from a pickle's root to its tensors. Containers may be shared and may
 * hold themselves: whether one leads to tensors is asked once, what does not is never entered
 * again, and the unfolding of shared ones is bounded by the length of the pickle. */
#include "torch_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/text.h"

#define MAX_NESTING 200u
/* Steps, and bytes of names, that a walk may take for each byte of the pickle. */
#define STEPS_PER_BYTE 64u
#define STEPS_AT_LEAST ((uint64_t)1 << 12)

enum walk_state { NOT_ASKED, BEING_ASKED, WITHOUT_TENSORS, WITH_TENSORS };

struct walk {
    struct phema_checkpoint *checkpoint;
    struct phema_text name;
    uint64_t steps_left;
    size_t n_left_out; /* values with tensors under keys that make no name */
};

static enum phema_status spend(struct walk *walk, uint64_t steps, struct phema_error *err)
{
    if (steps > walk->steps_left)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the pickle shares containers so often that its listing would be many "
                          "times the file");
    walk->steps_left -= steps;
    return PHEMA_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct pickle_node *left = *(const struct pickle_node *const *)a;
    const struct pickle_node *right = *(const struct pickle_node *const *)b;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->kind == PICKLE_INT)
        return (left->integer > right->integer) - (left->integer < right->integer);
    size_t shorter = left->span.size < right->span.size ? left->span.size : right->span.size;
    int order = shorter ? memcmp(left->span.data, right->span.data, shorter) : 0;
    return order ? order
                 : (left->span.size > right->span.size) - (left->span.size < right->span.size);
}

static bool makes_name(const struct pickle_node *key)
{
    return key->kind == PICKLE_TEXT || key->kind == PICKLE_INT;
}

/* Python keeps the last of two values under one key; which one was meant is not ours to guess. */
static enum phema_status check_keys(const struct pickle_node *dict, struct phema_error *err)
{
    size_t n = 0;
    const struct pickle_node **keys =
        calloc(dict->items.n / 2 + 1, sizeof(const struct pickle_node *));
    if (!keys)
        return fail_memory(err);
    for (size_t i = 0; i + 1 < dict->items.n; i += 2)
        if (makes_name(dict->items.at[i]))
            keys[n++] = dict->items.at[i];
    qsort(keys, n, sizeof(const struct pickle_node *), by_key);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 1; i < n && !status; i++) {
        if (by_key(&keys[i - 1], &keys[i]) != 0)
            continue;
        struct phema_name_buffer shown;
        const struct phema_span key =
            keys[i]->kind == PICKLE_TEXT ? keys[i]->span : (struct phema_span){NULL, 0};
        status = phema_fail(err, PHEMA_ERR_FILE, "a dict sets the key '%s' twice",
                            phema_name_shown(&shown, (const char *)key.data, key.size));
    }
    free(keys);
    return status;
}

/* Members of a module that its state_dict is made of. */
static struct pickle_node *member(const struct pickle_node *module, const char *name)
{
    size_t size = strlen(name);
    const struct pickle_node *state = module->state;
    for (size_t i = 0; state && i + 1 < state->items.n; i += 2) {
        const struct pickle_node *key = state->items.at[i];
        if (key->kind == PICKLE_TEXT && key->span.size == size &&
            memcmp(key->span.data, name, size) == 0)
            return state->items.at[i + 1];
    }
    return NULL;
}

static const char *const module_members[] = {"_parameters", "_buffers", "_modules"};

/* Which buffers are left out; torch looks it up as a set. */
static const char left_out_member[] = "_non_persistent_buffers_set";

static enum phema_status ask(bool *has_tensors, struct walk *walk, struct pickle_node *node,
                             unsigned nesting, struct phema_error *err);

static enum phema_status ask_items(bool *has_tensors, struct walk *walk,
                                   const struct pickle_node *node, unsigned nesting,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    bool is_dict = node->kind == PICKLE_DICT;
    for (size_t i = is_dict ? 1 : 0; i < node->items.n && !status; i += is_dict ? 2 : 1) {
        bool has = false;
        status = ask(&has, walk, node->items.at[i], nesting + 1, err);
        *has_tensors |= has;
    }
    if (!status && is_dict && *has_tensors)
        status = check_keys(node, err);
    return status;
}

static enum phema_status ask_module(bool *has_tensors, struct walk *walk,
                                    const struct pickle_node *module, unsigned nesting,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(module_members) && !status; i++) {
        struct pickle_node *dict = member(module, module_members[i]);
        if (!dict)
            continue;
        if (dict->kind != PICKLE_DICT)
            return phema_fail(err, PHEMA_ERR_FILE, "a module's %s are no dict", module_members[i]);
        bool has = false;
        status = ask(&has, walk, dict, nesting + 1, err);
        *has_tensors |= has;
    }
    if (status || !*has_tensors)
        return status;
    const struct pickle_node *left_out = member(module, left_out_member);
    if (left_out && left_out->kind != PICKLE_SET)
        return phema_fail(err, PHEMA_ERR_FILE, "a module's %s is no set", left_out_member);
    return check_keys(module->state, err);
}

/* Whether any tensor lies below the node; the answer is kept in it. */
static enum phema_status ask(bool *has_tensors, struct walk *walk, struct pickle_node *node,
                             unsigned nesting, struct phema_error *err)
{
    *has_tensors = node->kind == PICKLE_TENSOR || node->walk_state == WITH_TENSORS;
    bool is_container = node->kind == PICKLE_TUPLE || node->kind == PICKLE_LIST ||
                        node->kind == PICKLE_SET || node->kind == PICKLE_DICT;
    if ((!is_container && node->kind != PICKLE_MODULE) || node->walk_state == WITH_TENSORS ||
        node->walk_state == WITHOUT_TENSORS)
        return PHEMA_OK;
    if (node->walk_state == BEING_ASKED)
        return phema_fail(err, PHEMA_ERR_FILE, "a container holds itself");
    if (nesting > MAX_NESTING)
        return phema_fail(err, PHEMA_ERR_FILE, "containers are nested deeper than %u", MAX_NESTING);

    node->walk_state = BEING_ASKED;
    enum phema_status status = is_container ? ask_items(has_tensors, walk, node, nesting, err)
                                            : ask_module(has_tensors, walk, node, nesting, err);
    node->walk_state = *has_tensors ? WITH_TENSORS : WITHOUT_TENSORS;
    return status;
}

/* Sizes and strides of a view into the arena; strides stay NULL for C order, in which sizes of 1
 * may have any stride. */
static enum phema_status lay_out(struct phema_tensor *tensor, struct phema_arena *arena,
                                 const struct pickle_tensor *view, struct phema_error *err)
{
    size_t rank = view->sizes->items.n;
    uint64_t *shape = phema_arena_array(arena, 2 * rank, sizeof(*shape));
    if (!shape)
        return fail_memory(err);
    uint64_t *stride = shape + rank;
    uint64_t n_elems = 1;
    bool is_empty = false;
    for (size_t i = 0; i < rank; i++) {
        shape[i] = (uint64_t)view->sizes->items.at[i]->integer;
        stride[i] = (uint64_t)view->strides->items.at[i]->integer;
        is_empty |= shape[i] == 0;
    }
    bool is_c_order = true;
    for (size_t i = rank; i-- > 0 && !is_empty;) {
        is_c_order &= shape[i] == 1 || stride[i] == n_elems;
        n_elems *= shape[i]; /* the product was checked when the tensor was rebuilt */
    }
    if (is_empty)
        n_elems = 0;
    if (view->is_packed) {
        if (rank == 0 || !is_c_order || shape[rank - 1] > UINT64_MAX / 2)
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "a view of packed float4 elements that is not in C order is not read");
        shape[rank - 1] *= 2;
        n_elems *= 2;
    }
    tensor->rank = (unsigned)rank;
    tensor->shape = shape;
    tensor->stride = is_c_order ? NULL : stride;
    tensor->n_elems = n_elems;
    return PHEMA_OK;
}

enum phema_status torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                     const struct pickle_tensor *view, struct phema_error *err)
{
    enum phema_status status = lay_out(tensor, arena, view, err);
    if (status)
        return status;
    unsigned bits = view->is_packed ? 8 : phema_dtype_bits(view->dtype);
    tensor->dtype = view->dtype;
    tensor->file = view->storage->file;
    tensor->offset = view->storage->offset;
    tensor->size_bytes = tensor->n_elems / (view->is_packed ? 2 : 1) * bits / 8;
    if (tensor->n_elems) /* an empty view may claim to begin anywhere: then it begins with the
                            storage */
        tensor->offset += view->first * bits / 8;
    return PHEMA_OK;
}

static enum phema_status list_tensor(struct walk *walk, const struct pickle_tensor *view,
                                     enum phema_tensor_kind kind, struct phema_error *err)
{
    static const char lone[] = "tensor";
    bool is_root = !walk->name.data;
    const char *name = is_root ? lone : walk->name.data;
    size_t name_size = is_root ? strlen(lone) : walk->name.size;
    struct phema_tensor tensor = {.kind = kind, .name_size = name_size};
    enum phema_status status = spend(walk, name_size + 16 * view->sizes->items.n, err);
    if (!status)
        status = torch_place_tensor(&tensor, &walk->checkpoint->arena, view, err);
    if (status)
        return fail_in_tensor(err, status, name, name_size);
    tensor.name = phema_arena_copy(&walk->checkpoint->arena, name, name_size);
    if (!tensor.name)
        return fail_memory(err);
    return checkpoint_add_tensor(walk->checkpoint, &tensor, err);
}

/* Puts a part behind the name; returns the size to go back to. A name that has no part yet has no
 * data, since parts may be empty. */
static size_t push_name(struct walk *walk, const char *part, size_t size)
{
    size_t before = walk->name.size;
    if (walk->name.data)
        phema_text_puts(&walk->name, ".");
    phema_text_append(&walk->name, part, size);
    return before;
}

static void pop_name(struct walk *walk, size_t before, bool was_root)
{
    if (was_root) {
        phema_text_clear(&walk->name);
        return;
    }
    walk->name.size = before;
    walk->name.data[before] = '\0';
}

static enum phema_status list(struct walk *walk, struct pickle_node *node,
                              enum phema_tensor_kind kind, struct phema_error *err);

static enum phema_status list_below(struct walk *walk, const char *part, size_t size,
                                    struct pickle_node *node, enum phema_tensor_kind kind,
                                    struct phema_error *err)
{
    bool was_root = !walk->name.data;
    enum phema_status status = spend(walk, 1, err);
    if (status || (node->kind != PICKLE_TENSOR && node->walk_state != WITH_TENSORS))
        return status;
    size_t before = push_name(walk, part, size);
    status = phema_text_check(&walk->name, err);
    if (status)
        return status;
    status = list(walk, node, kind, err);
    pop_name(walk, before, was_root);
    return status;
}

static enum phema_status list_numbered(struct walk *walk, int64_t number, struct pickle_node *node,
                                       enum phema_tensor_kind kind, struct phema_error *err)
{
    struct phema_text digits = {0};
    phema_text_printf(&digits, "%lld", (long long)number);
    enum phema_status status = phema_text_check(&digits, err);
    if (!status)
        status = list_below(walk, digits.data, digits.size, node, kind, err);
    phema_text_clear(&digits);
    return status;
}

static enum phema_status list_items(struct walk *walk, const struct pickle_node *sequence,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < sequence->items.n && !status; i++)
        status = list_numbered(walk, (int64_t)i, sequence->items.at[i], PHEMA_KIND_UNKNOWN, err);
    return status;
}

static enum phema_status list_dict(struct walk *walk, const struct pickle_node *dict,
                                   enum phema_tensor_kind kind, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i + 1 < dict->items.n && !status; i += 2) {
        const struct pickle_node *key = dict->items.at[i];
        struct pickle_node *value = dict->items.at[i + 1];
        if (key->kind == PICKLE_TEXT)
            status =
                list_below(walk, (const char *)key->span.data, key->span.size, value, kind, err);
        else if (key->kind == PICKLE_INT)
            status = list_numbered(walk, key->integer, value, kind, err);
        else if (value->kind == PICKLE_TENSOR || value->walk_state == WITH_TENSORS)
            walk->n_left_out++;
    }
    return status;
}

static bool is_in_set(const struct pickle_node *set, const struct pickle_node *key)
{
    for (size_t i = 0; set && i < set->items.n; i++) {
        const struct pickle_node *item = set->items.at[i];
        if (item->kind == PICKLE_TEXT && by_key(&item, &key) == 0)
            return true;
    }
    return false;
}

/* Own parameters or buffers: tensors, or None where the module has none. */
static enum phema_status list_own(struct walk *walk, const struct pickle_node *dict,
                                  const struct pickle_node *left_out, enum phema_tensor_kind kind,
                                  struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; dict && i + 1 < dict->items.n && !status; i += 2) {
        const struct pickle_node *key = dict->items.at[i];
        struct pickle_node *value = dict->items.at[i + 1];
        if (left_out)
            status = spend(walk, left_out->items.n, err);
        if (status || value->kind == PICKLE_NONE)
            continue;
        if (key->kind != PICKLE_TEXT || value->kind != PICKLE_TENSOR)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "a module has a parameter or buffer that is no named tensor");
        if (!is_in_set(left_out, key))
            status =
                list_below(walk, (const char *)key->span.data, key->span.size, value, kind, err);
    }
    return status;
}

/* As state_dict() does: own parameters, own buffers that are persistent, then children. */
static enum phema_status list_module(struct walk *walk, const struct pickle_node *module,
                                     struct phema_error *err)
{
    const struct pickle_node *children = member(module, "_modules");
    enum phema_status status =
        list_own(walk, member(module, "_parameters"), NULL, PHEMA_KIND_PARAMETER, err);
    if (!status)
        status = list_own(walk, member(module, "_buffers"), member(module, left_out_member),
                          PHEMA_KIND_BUFFER, err);
    if (!status && children)
        status = list_dict(walk, children, PHEMA_KIND_UNKNOWN, err);
    return status;
}

/* A node that is known to lead to tensors. */
static enum phema_status list(struct walk *walk, struct pickle_node *node,
                              enum phema_tensor_kind kind, struct phema_error *err)
{
    switch ((enum pickle_kind)node->kind) {
    case PICKLE_TENSOR:
        return list_tensor(walk, node->tensor, kind, err);
    case PICKLE_DICT:
        return list_dict(walk, node, kind, err);
    case PICKLE_TUPLE:
    case PICKLE_LIST:
        return list_items(walk, node, err);
    case PICKLE_MODULE:
        return list_module(walk, node, err);
    case PICKLE_SET: /* has no order to name its members by */
        walk->n_left_out++;
        return PHEMA_OK;
    default:
        return PHEMA_OK;
    }
}

enum phema_status torch_list_tensors(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                                     size_t pickle_size, struct phema_error *err)
{
    struct walk walk = {.checkpoint = checkpoint};
    if (!phema_size_mul(&walk.steps_left, pickle_size, STEPS_PER_BYTE) ||
        !phema_size_add(&walk.steps_left, walk.steps_left, STEPS_AT_LEAST))
        walk.steps_left = UINT64_MAX;
    bool has_tensors = false;
    enum phema_status status = ask(&has_tensors, &walk, root, 0, err);
    if (!status && has_tensors)
        status = list(&walk, root, PHEMA_KIND_UNKNOWN, err);
    phema_text_clear(&walk.name);
    if (!status && walk.n_left_out)
        status =
            checkpoint_warn(checkpoint, err,
                            "%zu values with tensors are left out: their keys are neither text "
                            "nor integers",
                            walk.n_left_out);
    return status;
}
