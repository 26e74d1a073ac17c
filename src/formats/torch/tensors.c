// SPDX-License-Identifier: Apache-2.0
/* tensors.c - From the unpickled root to a list of named tensors. Containers may be shared and may
 * contain themselves. The walk notes once for each container whether it leads to tensors, and never
 * enters the others again. The length of the pickle bounds the unfolding of shared containers. */
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

#define MAX_NESTING 200u
/* Limits of steps and of bytes of names, for each byte of the pickle. */
#define STEPS_PER_BYTE 64u
#define STEPS_AT_LEAST ((uint64_t)1 << 12)

enum walk_state {
    NOT_SEARCHED,
    BEING_SEARCHED,
    WITHOUT_TENSORS,
    WITH_TENSORS,
    BEING_LISTED,
    IS_LISTED /* a tensor */
};

/* Files are listed in two passes: first the content of a state_dict, then the tensors that only
 * attributes lead to. Attributes may refer to anything, even to their owner. */
struct walk {
    struct phema_checkpoint *checkpoint;
    struct phema_strbuf name; /* of the current node: n_parts, with points between */
    size_t n_parts;
    uint64_t steps_left;
    unsigned nesting;
    unsigned n_attributes; /* on the path from the root to the current node */
    bool is_second;        /* pass */
    bool has_attributes;   /* that lead to tensors */
    size_t n_left_out;     /* values with tensors under keys that cannot be part of a name */
    size_t n_too_deep;     /* attributes that were not followed to their end */
    /* of an item of a distributed checkpoint: takes the tensors, which can be parts; else NULL */
    const struct torch_item *item;
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

static enum phema_status fail_nesting(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE, "containers are nested deeper than %u", MAX_NESTING);
}

static bool leads_to_tensors(const struct pickle_node *node)
{
    return node->kind == PICKLE_TENSOR || node->walk_state == WITH_TENSORS;
}

/* The item of a module under a name; NULL: nothing, or of another kind. */
static const struct pickle_node *member(const struct pickle_node *module, const char *name,
                                        enum pickle_kind kind)
{
    const struct pickle_node *found = module->state ? pickle_find(module->state, name) : NULL;
    return pickle_is(found, kind) ? found : NULL;
}

/* The items of a state_dict: dicts. */
static const char *const module_members[] = {"_parameters", "_buffers", "_modules"};

/* The buffers that are left out, a set. */
static const char left_out_member[] = "_non_persistent_buffers_set";

/* All other items of a module are attributes. */
static bool is_member(const struct pickle_node *key)
{
    if (key->kind != PICKLE_TEXT)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(module_members); i++)
        if (span_is(key->span, module_members[i]))
            return true;
    return span_is(key->span, left_out_member);
}

/* ---- Search for tensors ---- */

static enum phema_status search(struct walk *walk, struct pickle_node *node, unsigned nesting,
                                struct phema_error *err);

static enum phema_status search_attribute(bool *has_tensors, struct walk *walk,
                                          struct pickle_node *node, unsigned nesting,
                                          struct phema_error *err)
{
    walk->n_attributes++;
    enum phema_status status = search(walk, node, nesting + 1, err);
    walk->n_attributes--;
    walk->has_attributes |= leads_to_tensors(node);
    *has_tensors |= leads_to_tensors(node);
    return status;
}

static enum phema_status search_items(bool *has_tensors, struct walk *walk,
                                      const struct pickle_node *node, unsigned nesting,
                                      struct phema_error *err)
{
    bool is_dict = node->kind == PICKLE_DICT;
    for (size_t i = is_dict ? 1 : 0; i < node->items.n; i += is_dict ? 2 : 1) {
        enum phema_status status = search(walk, node->items.at[i], nesting + 1, err);
        if (status)
            return status;
        *has_tensors |= leads_to_tensors(node->items.at[i]);
    }
    return node->attributes ? search_attribute(has_tensors, walk, node->attributes, nesting, err)
                            : PHEMA_OK;
}

static enum phema_status search_module(bool *has_tensors, struct walk *walk,
                                       const struct pickle_node *module, unsigned nesting,
                                       struct phema_error *err)
{
    const struct pickle_node *state = module->state;
    bool is_strict = walk->n_attributes == 0;
    for (size_t i = 0; state && i < ARRAY_LEN(module_members); i++) {
        struct pickle_node *dict = pickle_find(state, module_members[i]);
        if (dict && dict->kind != PICKLE_DICT && is_strict)
            return phema_fail(err, PHEMA_ERR_FILE, "expected a dict of a module's %s",
                              module_members[i]);
        if (!pickle_is(dict, PICKLE_DICT))
            continue;
        enum phema_status status = search(walk, dict, nesting + 1, err);
        if (status)
            return status;
        *has_tensors |= leads_to_tensors(dict);
    }
    const struct pickle_node *left_out = state ? pickle_find(state, left_out_member) : NULL;
    if (*has_tensors && left_out && left_out->kind != PICKLE_SET && is_strict)
        return phema_fail(err, PHEMA_ERR_FILE, "a module's %s is no set", left_out_member);
    for (size_t i = 0; state && i + 1 < state->items.n; i += 2) {
        if (is_member(state->items.at[i]))
            continue;
        enum phema_status status =
            search_attribute(has_tensors, walk, state->items.at[i + 1], nesting, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* What an opaque object was made of. A tensor that is not read counts as one. */
static enum phema_status search_opaque(bool *has_tensors, struct walk *walk,
                                       const struct pickle_record *record, unsigned nesting,
                                       struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *has_tensors |= record->hides_items || record->class->action == ACTION_UNREAD;
    if (record->args)
        status = search_attribute(has_tensors, walk, record->args, nesting, err);
    if (!status && record->state)
        status = search_attribute(has_tensors, walk, record->state, nesting, err);
    return status;
}

/* Notes in the node whether any tensor lies below it. A container may contain itself through
 * attributes; that changes nothing. */
static enum phema_status search(struct walk *walk, struct pickle_node *node, unsigned nesting,
                                struct phema_error *err)
{
    bool is_container = node->kind == PICKLE_TUPLE || node->kind == PICKLE_LIST ||
                        node->kind == PICKLE_SET || node->kind == PICKLE_DICT;
    if ((!is_container && node->kind != PICKLE_MODULE && node->kind != PICKLE_OPAQUE) ||
        node->walk_state == WITH_TENSORS || node->walk_state == WITHOUT_TENSORS)
        return PHEMA_OK;
    bool is_inside = node->walk_state == BEING_SEARCHED;
    if (walk->n_attributes && (is_inside || nesting > MAX_NESTING)) {
        walk->n_too_deep += !is_inside;
        return PHEMA_OK;
    }
    if (is_inside)
        return phema_fail(err, PHEMA_ERR_FILE, "a container holds itself");
    if (nesting > MAX_NESTING)
        return fail_nesting(err);

    bool has_tensors = false;
    node->walk_state = BEING_SEARCHED;
    enum phema_status status = is_container ? search_items(&has_tensors, walk, node, nesting, err)
                               : node->kind == PICKLE_MODULE
                                   ? search_module(&has_tensors, walk, node, nesting, err)
                                   : search_opaque(&has_tensors, walk, node->record, nesting, err);
    node->walk_state = has_tensors ? WITH_TENSORS : WITHOUT_TENSORS;
    return status;
}

/* ---- Listing ---- */

/* Without the other parts a DTensor can be read only if its one part is the whole. */
static enum phema_status check_whole(const struct phema_tensor *part,
                                     const struct sharding *sharding, struct phema_error *err)
{
    if (are_equal_sizes(part->shape, sharding->shape, part->rank))
        return PHEMA_OK;
    struct phema_name_buffer found, whole;
    return phema_fail(
        err, PHEMA_ERR_FILE,
        "is a DTensor of shape %s, of which this file has the part %s of one process; "
        "name a directory of torch_checkpointing, or save with "
        "StateDictOptions(full_state_dict=True)",
        format_index(&whole, sharding->shape, part->rank),
        format_index(&found, part->shape, part->rank));
}

static enum phema_status add_tensor(struct walk *walk, const struct phema_tensor *tensor,
                                    const struct pickle_tensor *view, struct phema_error *err)
{
    const struct torch_item *item = walk->item;
    const uint64_t *start = NULL;
    struct sharding sharding = {.shape = tensor->shape};
    enum phema_status status = PHEMA_OK;
    if (view->spec) {
        struct phema_arena *arena = &walk->checkpoint->arena;
        status = sharding_read(&sharding, arena, view, err);
        if (!status)
            status = sharding_find_part(&start, arena, &sharding, tensor, err);
        if (!status && item && sharding.process != item->process)
            status =
                phema_fail(err, PHEMA_ERR_FILE, "is the part of process %llu, expected %llu",
                           (unsigned long long)sharding.process, (unsigned long long)item->process);
        if (!status && !item)
            status = check_whole(tensor, &sharding, err);
        if (status)
            return fail_in_tensor(err, status, tensor->name, tensor->name_size);
        if (item)
            *item->has_dtensors = true;
    }
    return item ? assembly_add(item->assembly, tensor, start, sharding.shape, err)
                : checkpoint_add_tensor(walk->checkpoint, tensor, err);
}

static enum phema_status list_tensor(struct walk *walk, const struct pickle_tensor *view,
                                     enum phema_tensor_kind kind, struct phema_error *err)
{
    struct phema_span name = {(const uint8_t *)walk->name.data, walk->name.size};
    if (!walk->n_parts)
        name = (struct phema_span){(const uint8_t *)"tensor", strlen("tensor")};
    struct phema_tensor tensor = {.kind = kind, .name_size = name.size};
    enum phema_status status = spend(walk, name.size + UINT64_C(16) * view->sizes->items.n, err);
    if (!status)
        status = torch_place_tensor(&tensor, &walk->checkpoint->arena, view, err);
    if (status)
        return fail_in_tensor(err, status, (const char *)name.data, name.size);
    tensor.name = phema_arena_copy(&walk->checkpoint->arena, name.data, name.size);
    if (!tensor.name)
        return phema_fail_memory(err);
    return add_tensor(walk, &tensor, view, err);
}

static enum phema_status list(struct walk *walk, struct pickle_node *node,
                              enum phema_tensor_kind kind, struct phema_error *err);

/* Parts of names may be empty. */
static enum phema_status list_below(struct walk *walk, const char *part, size_t size,
                                    struct pickle_node *node, enum phema_tensor_kind kind,
                                    struct phema_error *err)
{
    enum phema_status status = spend(walk, 1, err);
    if (status || !leads_to_tensors(node))
        return status;
    size_t before = walk->name.size;
    if (walk->n_parts++)
        phema_strbuf_puts(&walk->name, ".");
    phema_strbuf_append(&walk->name, part, size);
    status = phema_strbuf_check(&walk->name, err);
    if (status)
        return status;
    status = list(walk, node, kind, err);
    walk->n_parts--;
    walk->name.size = before;
    return status;
}

static enum phema_status list_numbered(struct walk *walk, int64_t number, struct pickle_node *node,
                                       enum phema_tensor_kind kind, struct phema_error *err)
{
    char digits[24];
    int size = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    return list_below(walk, digits, (size_t)size, node, kind, err);
}

/* Warns once: in the first pass, or in the second if it is the only one. */
static void leave_out(struct walk *walk)
{
    walk->n_left_out += !walk->is_second || walk->n_attributes > 0;
}

static enum phema_status list_pair(struct walk *walk, const struct pickle_node *key,
                                   struct pickle_node *value, enum phema_tensor_kind kind,
                                   struct phema_error *err)
{
    if (key->kind == PICKLE_TEXT)
        return list_below(walk, (const char *)key->span.data, key->span.size, value, kind, err);
    if (key->kind == PICKLE_INT)
        return list_numbered(walk, key->integer, value, kind, err);
    if (leads_to_tensors(value))
        leave_out(walk);
    return PHEMA_OK;
}

/* Attributes are named like items. */
static enum phema_status list_attribute(struct walk *walk, const struct pickle_node *key,
                                        struct pickle_node *value, struct phema_error *err)
{
    walk->n_attributes++;
    enum phema_status status = list_pair(walk, key, value, PHEMA_KIND_ATTRIBUTE, err);
    walk->n_attributes--;
    return status;
}

/* The state that BUILD gives a dict: a dict of attributes, or a pair of such dicts, the second for
 * __slots__. */
static enum phema_status list_state(struct walk *walk, const struct pickle_node *state,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (state->kind == PICKLE_TUPLE && state->items.n == 2)
        for (size_t i = 0; i < 2 && !status; i++)
            if (state->items.at[i]->kind == PICKLE_DICT)
                status = list_state(walk, state->items.at[i], err);
    if (state->kind != PICKLE_DICT || state->walk_state != WITH_TENSORS)
        return status;
    for (size_t i = 0; i + 1 < state->items.n && !status; i += 2)
        status = list_attribute(walk, state->items.at[i], state->items.at[i + 1], err);
    return status;
}

static enum phema_status list_dict(struct walk *walk, const struct pickle_node *dict,
                                   enum phema_tensor_kind kind, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i + 1 < dict->items.n && !status; i += 2)
        status = list_pair(walk, dict->items.at[i], dict->items.at[i + 1], kind, err);
    if (!status && walk->is_second && dict->attributes)
        status = list_state(walk, dict->attributes, err);
    return status;
}

static bool is_in_set(const struct pickle_node *set, const struct pickle_node *key)
{
    for (size_t i = 0; set && i < set->items.n; i++) {
        const struct pickle_node *item = set->items.at[i];
        if (item->kind == PICKLE_TEXT && item->span.size == key->span.size &&
            (!key->span.size || memcmp(item->span.data, key->span.data, key->span.size) == 0))
            return true;
    }
    return false;
}

/* Own parameters or buffers: tensors, or None where the module has none. An attribute may be any
 * object with such names. */
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
        bool is_named_tensor = key->kind == PICKLE_TEXT &&
                               (value->kind == PICKLE_TENSOR || value->kind == PICKLE_OPAQUE);
        if (!is_named_tensor && !walk->n_attributes)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "a module has a parameter or buffer that is no named tensor");
        if (!is_named_tensor || !is_in_set(left_out, key))
            status = list_pair(walk, key, value, kind, err);
    }
    return status;
}

/* As state_dict() does: own parameters, own buffers that are persistent, then children. */
static enum phema_status list_module(struct walk *walk, const struct pickle_node *module,
                                     struct phema_error *err)
{
    const struct pickle_node *state = module->state;
    const struct pickle_node *children = member(module, "_modules", PICKLE_DICT);
    enum phema_status status =
        list_own(walk, member(module, "_parameters", PICKLE_DICT), NULL, PHEMA_KIND_PARAMETER, err);
    if (status)
        return status;
    status = list_own(walk, member(module, "_buffers", PICKLE_DICT),
                      member(module, left_out_member, PICKLE_SET), PHEMA_KIND_BUFFER, err);
    if (!status && children)
        status = list_dict(walk, children, PHEMA_KIND_UNKNOWN, err);
    for (size_t i = 0; walk->is_second && state && i + 1 < state->items.n && !status; i += 2)
        if (!is_member(state->items.at[i]))
            status = list_attribute(walk, state->items.at[i], state->items.at[i + 1], err);
    return status;
}

/* Its tensors are attributes. Whoever wants those of the place it stands at is told that it is not
 * read, unless the user has allowed its class. */
static enum phema_status list_opaque(struct walk *walk, const struct pickle_record *record,
                                     struct phema_error *err)
{
    if (walk->is_second)
        return record->state ? list_state(walk, record->state, err) : PHEMA_OK;
    const struct phema_unread unread = {.name = walk->name.data,
                                        .name_size = walk->name.size,
                                        .class_name = record->class->name,
                                        .why = record->class->why};
    enum phema_status status = spend(walk, unread.name_size, err);
    return status || walk->n_attributes || record->class->action == ACTION_ALLOWED
               ? status
               : checkpoint_add_unread(walk->checkpoint, &unread, err);
}

static enum phema_status list_container(struct walk *walk, struct pickle_node *node,
                                        enum phema_tensor_kind kind, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    switch ((enum pickle_kind)node->kind) {
    case PICKLE_DICT:
        return list_dict(walk, node, kind, err);
    case PICKLE_TUPLE:
    case PICKLE_LIST:
        for (size_t i = 0; i < node->items.n && !status; i++)
            status = list_numbered(walk, (int64_t)i, node->items.at[i], PHEMA_KIND_UNKNOWN, err);
        return status;
    case PICKLE_MODULE:
        return list_module(walk, node, err);
    case PICKLE_OPAQUE:
        return list_opaque(walk, node->record, err);
    default: /* a set has no order that could name its members */
        leave_out(walk);
        return PHEMA_OK;
    }
}

/* Lists the tensors below a node that leads to tensors. Shared containers can be nested deeper here
 * than when they were first visited. */
static enum phema_status list(struct walk *walk, struct pickle_node *node,
                              enum phema_tensor_kind kind, struct phema_error *err)
{
    if (node->kind == PICKLE_TENSOR) {
        if (walk->is_second && node->walk_state == IS_LISTED)
            return PHEMA_OK;
        node->walk_state = IS_LISTED;
        return list_tensor(walk, node->tensor, walk->is_second ? PHEMA_KIND_ATTRIBUTE : kind, err);
    }
    if (walk->nesting > MAX_NESTING) {
        if (!walk->n_attributes)
            return fail_nesting(err);
        walk->n_too_deep++;
        return PHEMA_OK;
    }
    node->walk_state = BEING_LISTED;
    walk->nesting++;
    enum phema_status status = list_container(walk, node, kind, err);
    walk->nesting--;
    node->walk_state = WITH_TENSORS;
    return status;
}

/* ---- The root ---- */

/* One pass. Without a key the root is the model. */
static enum phema_status list_pass(struct walk *walk, struct pickle_node *root,
                                   const char *model_key, struct pickle_node *model,
                                   struct phema_error *err)
{
    if (!model_key)
        return leads_to_tensors(root) ? list(walk, root, PHEMA_KIND_UNKNOWN, err) : PHEMA_OK;
    enum phema_status status =
        list_below(walk, model_key, strlen(model_key), model, PHEMA_KIND_UNKNOWN, err);
    if (status || !walk->is_second)
        return status;
    for (size_t i = 0; i + 1 < root->items.n && !status; i += 2)
        if (root->items.at[i + 1] != model)
            status = list_attribute(walk, root->items.at[i], root->items.at[i + 1], err);
    return !status && root->attributes ? list_state(walk, root->attributes, err) : status;
}

static enum phema_status warn(const struct walk *walk, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (walk->n_left_out)
        status = checkpoint_warn(walk->checkpoint, err,
                                 "%zu values with tensors are left out: their keys are neither "
                                 "text nor integers",
                                 walk->n_left_out);
    if (!status && walk->n_too_deep)
        status = checkpoint_warn(walk->checkpoint, err,
                                 "%zu attributes are not followed to their end: containers are "
                                 "nested deeper than %u",
                                 walk->n_too_deep, MAX_NESTING);
    return status;
}

/* A file none of whose tensors is read. */
static enum phema_status fail_unread(const struct phema_unread *unread, struct phema_error *err)
{
    struct phema_name_buffer class;
    (void)phema_name_show(&class, unread->class_name);
    if (unread->why)
        return phema_fail(err, PHEMA_ERR_FILE, "'%s': %s", class.text, unread->why);
    return phema_fail(err, PHEMA_ERR_FILE,
                      "holds tensors only in an object of the class '%s', which is not read; save "
                      "the state_dict",
                      class.text);
}

static enum phema_status walk_root(struct walk *walk, struct pickle_node *root,
                                   const char *model_key, struct phema_error *err)
{
    struct pickle_node *model = model_key ? pickle_find(root, model_key) : root;
    enum phema_status status = search(walk, model, 0, err);
    bool ignored = false;
    for (size_t i = 1; model_key && i < root->items.n && !status; i += 2)
        if (root->items.at[i] != model)
            status = search_attribute(&ignored, walk, root->items.at[i], 0, err);
    if (!status && model_key && root->attributes)
        status = search_attribute(&ignored, walk, root->attributes, 0, err);
    if (status)
        return status;
    status = list_pass(walk, root, model_key, model, err);
    walk->is_second = true;
    if (!status && walk->has_attributes)
        status = list_pass(walk, root, model_key, model, err);
    size_t n_unread = 0;
    const struct phema_unread *unread = phema_checkpoint_unread(walk->checkpoint, &n_unread);
    if (!status && n_unread && !walk->item && phema_checkpoint_n_tensors(walk->checkpoint) == 0)
        status = fail_unread(unread, err);
    return status ? status : warn(walk, err);
}

enum phema_status torch_list(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                             const char *model_key, const struct torch_item *item,
                             size_t pickle_size, struct phema_error *err)
{
    struct walk walk = {.checkpoint = checkpoint, .item = item, .n_parts = item != NULL};
    if (!phema_size_mul(&walk.steps_left, pickle_size, STEPS_PER_BYTE) ||
        !phema_size_add(&walk.steps_left, walk.steps_left, STEPS_AT_LEAST))
        walk.steps_left = UINT64_MAX;
    if (item)
        phema_strbuf_puts(&walk.name, item->name);
    enum phema_status status = phema_strbuf_check(&walk.name, err);
    if (!status)
        status = walk_root(&walk, root, model_key, err);
    phema_strbuf_clear(&walk.name);
    if (status || (item && item->process != 0))
        return status;
    return torch_list_values(checkpoint, root, item ? item->name : NULL, pickle_size, err);
}
