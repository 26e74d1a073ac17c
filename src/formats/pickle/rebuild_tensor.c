// SPDX-License-Identifier: Apache-2.0
/* rebuild_tensor.c - Arguments of torch._utils._rebuild_* to a bounds-checked tensor: every element
 * lies in its storage (torch/_utils.py, torch/_tensor.py). */
#include "format.h"
#include "pickle/machine_internal.h"

static const struct pickle_node *arg(const struct pickle_node *args, size_t index)
{
    return index < args->items.n ? args->items.at[index] : NULL;
}

/* The last element of the view, counted from the first of the storage. An empty view has no
 * elements, whatever start it claims. */
static enum phema_status check_reach(const struct pickle_tensor *tensor, struct phema_error *err)
{
    uint64_t last = tensor->first;
    bool fits = true;
    uint64_t n_elems = 1;
    for (size_t i = 0; i < tensor->sizes->items.n; i++)
        if (tensor->sizes->items.at[i]->integer == 0)
            return PHEMA_OK;
    for (size_t i = 0; i < tensor->sizes->items.n && fits; i++) {
        uint64_t size = (uint64_t)tensor->sizes->items.at[i]->integer;
        uint64_t stride = (uint64_t)tensor->strides->items.at[i]->integer;
        uint64_t step = 0;
        fits = phema_size_mul(&n_elems, n_elems, size) &&
               (size == 1 ||
                (phema_size_mul(&step, size - 1, stride) && phema_size_add(&last, last, step)));
    }
    if (!fits || !phema_size_mul(&n_elems, n_elems, 16))
        return phema_fail(err, PHEMA_ERR_FILE, "the size of the tensor overflows");
    unsigned bits = tensor->is_packed ? 8 : phema_dtype_bits(tensor->dtype);
    uint64_t n_held = tensor->storage->size_bytes / (bits / 8);
    if (last >= n_held)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensor reaches element %llu of a storage of %llu elements",
                          (unsigned long long)last, (unsigned long long)n_held);
    return PHEMA_OK;
}

/* metadata: None or a dict in which neither conj nor neg is true. */
static enum phema_status check_view_metadata(const struct pickle_node *metadata,
                                             struct phema_error *err)
{
    if (!metadata || metadata->kind == PICKLE_NONE)
        return PHEMA_OK;
    if (metadata->kind != PICKLE_DICT)
        return fail_expected(err, "a dict as metadata");
    for (size_t i = 0; i + 1 < metadata->items.n; i += 2) {
        const struct pickle_node *key = metadata->items.at[i];
        const struct pickle_node *value = metadata->items.at[i + 1];
        if (key->kind == PICKLE_TEXT && value->kind == PICKLE_BOOL && !value->boolean)
            continue;
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensor is a view with a conj or neg bit, which is not read; save "
                          "it after .resolve_conj().resolve_neg()");
    }
    return PHEMA_OK;
}

/* In version 3 the storage is untyped, and the dtype an argument. */
static enum phema_status check_view(struct pickle_tensor *tensor, enum pickle_action version,
                                    const struct pickle_node *args, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (version == ACTION_TENSOR_V2)
        status = check_view_metadata(arg(args, 6), err);
    if (version == ACTION_TENSOR_V3) {
        const struct pickle_node *dtype = arg(args, 6);
        if (!tensor->storage->is_untyped)
            return fail_expected(err, "an untyped storage");
        if (!pickle_is(dtype, PICKLE_GLOBAL) ||
            (dtype->global->action != ACTION_DTYPE && dtype->global->action != ACTION_PACKED_DTYPE))
            return fail_expected(err, "a dtype of torch");
        tensor->dtype = dtype->global->dtype;
        tensor->is_packed = dtype->global->action == ACTION_PACKED_DTYPE;
        status = check_view_metadata(arg(args, 7), err);
    }
    return status ? status : check_reach(tensor, err);
}

static enum phema_status make_tensor(struct pickle_node **out, struct pickle_machine *machine,
                                     enum pickle_action version, const struct pickle_node *args,
                                     struct phema_error *err)
{
    static const struct {
        size_t least, most; /* arguments */
    } counts[] = {{4, 4}, {6, 7}, {7, 8}};
    size_t v = (size_t)(version - ACTION_TENSOR_V1);
    if (args->items.n < counts[v].least || args->items.n > counts[v].most)
        return phema_fail(err, PHEMA_ERR_FILE, "expected %zu arguments, found %zu", counts[v].least,
                          (size_t)args->items.n);
    if (pickle_is(arg(args, 0), PICKLE_OPAQUE)) {
        *out = args->items.at[0];
        return PHEMA_OK;
    }
    if (!pickle_is(arg(args, 0), PICKLE_STORAGE) || !pickle_is_count(arg(args, 1)))
        return fail_expected(err, "a storage and an offset of 0 or more");
    if (!pickle_holds_sizes(arg(args, 2)) || !pickle_holds_sizes(arg(args, 3)) ||
        arg(args, 2)->items.n != arg(args, 3)->items.n)
        return fail_expected(err, "sizes and strides of 0 or more, as many of one as of the other");
    if (arg(args, 2)->items.n > PHEMA_MAX_RANK)
        return phema_fail(err, PHEMA_ERR_FILE, "the tensor has more than %d dimensions",
                          PHEMA_MAX_RANK);

    struct pickle_node *node = pickle_alloc(machine, sizeof(*node));
    struct pickle_tensor *tensor = pickle_alloc(machine, sizeof(*tensor));
    if (!node || !tensor)
        return pickle_fail_memory(machine, err);
    node->kind = PICKLE_TENSOR;
    node->tensor = tensor;
    *tensor = (struct pickle_tensor){.storage = arg(args, 0)->storage,
                                     .dtype = arg(args, 0)->storage->dtype,
                                     .first = (uint64_t)arg(args, 1)->integer,
                                     .sizes = arg(args, 2),
                                     .strides = arg(args, 3)};
    enum phema_status status = check_view(tensor, version, args, err);
    if (status)
        return status;
    *out = node;
    return PHEMA_OK;
}

/* (tensor, requires_grad, hooks[, state]), or (tensor, dtype, device, requires_grad) */
static enum phema_status read_parameter(struct pickle_node **out, const struct pickle_node *args,
                                        size_t n_wanted, struct phema_error *err)
{
    bool is_tensor = pickle_is(arg(args, 0), PICKLE_TENSOR);
    if (args->items.n != n_wanted || (!is_tensor && !pickle_is(arg(args, 0), PICKLE_OPAQUE)))
        return phema_fail(err, PHEMA_ERR_FILE, "expected %zu arguments, the first a tensor",
                          n_wanted);
    *out = args->items.at[0];
    return PHEMA_OK;
}

/* torch.save on a device without storages of its own (XLA and the like) moves each tensor to the CPU. */
static enum phema_status read_device_tensor(struct pickle_node **out,
                                            const struct pickle_node *args, struct phema_error *err)
{
    enum phema_status status = read_parameter(out, args, 4, err);
    const struct pickle_node *dtype = arg(args, 1);
    if (status || (*out)->kind == PICKLE_OPAQUE)
        return status;
    if (!pickle_is(dtype, PICKLE_GLOBAL) || dtype->global->dtype != (*out)->tensor->dtype)
        return fail_expected(err, "a tensor of a device in the dtype of its copy on the CPU");
    return PHEMA_OK;
}

/* args: (class, dtype, sizes, ...) as torch makes the wrapper; state: (None, {_local_tensor,
 * _spec}). The node is the local part, with the specification of the whole. */
static enum phema_status make_dtensor(struct pickle_node **out, struct pickle_machine *machine,
                                      const struct pickle_node *args,
                                      const struct pickle_node *state, struct phema_error *err)
{
    const struct pickle_node *fields =
        pickle_is(state, PICKLE_TUPLE) && state->items.n == 2 ? state->items.at[1] : NULL;
    bool has_fields = pickle_is(fields, PICKLE_DICT) && fields->items.n <= 16;
    const struct pickle_node *local = has_fields ? pickle_find(fields, "_local_tensor") : NULL;
    const struct pickle_node *spec = has_fields ? pickle_find(fields, "_spec") : NULL;
    const struct pickle_node *dtype = arg(args, 1);
    if (!pickle_is(local, PICKLE_TENSOR) || local->tensor->spec || !pickle_is(spec, PICKLE_RECORD))
        return fail_expected(err, "a DTensor with a tensor as _local_tensor, and a _spec");
    if (!pickle_is(dtype, PICKLE_GLOBAL) || dtype->global->action != ACTION_DTYPE ||
        dtype->global->dtype != local->tensor->dtype || local->tensor->is_packed)
        return fail_expected(err, "a DTensor of the dtype of its _local_tensor");
    if (!pickle_holds_sizes(arg(args, 2)) || arg(args, 2)->items.n != local->tensor->sizes->items.n)
        return fail_expected(err, "a DTensor with as many sizes of 0 or more as its _local_tensor");
    struct pickle_node *node = pickle_alloc(machine, sizeof(*node));
    struct pickle_tensor *tensor = pickle_alloc(machine, sizeof(*tensor));
    if (!node || !tensor)
        return pickle_fail_memory(machine, err);
    *tensor = *local->tensor;
    tensor->spec = spec;
    tensor->global_sizes = arg(args, 2);
    node->kind = PICKLE_TENSOR;
    node->tensor = tensor;
    *out = node;
    return PHEMA_OK;
}

/* An object of a class that nobody here knows, which its user may have allowed to be left out. Floats
 * are read as what they are; what other bytes stand for, or a wrapper's items, only the class knows. */
static enum phema_status make_subclass(struct pickle_node **out, struct pickle_machine *machine,
                                       const struct pickle_node *args, struct phema_error *err)
{
    const struct pickle_global *function = arg(args, 0)->global, *class = arg(args, 1)->global;
    bool is_plain = function->action == ACTION_TENSOR_V1 || function->action == ACTION_TENSOR_V2 ||
                    function->action == ACTION_TENSOR_V3;
    enum phema_status status = PHEMA_OK;
    if (class->action == ACTION_UNKNOWN && is_plain) {
        status = make_tensor(out, machine, function->action, arg(args, 2), err);
        if (status || phema_dtype_is_float((*out)->tensor->dtype))
            return status;
    }
    if (class->action == ACTION_UNKNOWN) {
        struct pickle_global *unread = pickle_alloc(machine, sizeof(*unread));
        if (!unread)
            return pickle_fail_memory(machine, err);
        *unread = (struct pickle_global){
            .action = ACTION_UNREAD,
            .name = class->name,
            .why = "only its class knows what it holds; save it as a plain tensor"};
        class = unread;
    }
    status = pickle_make_opaque(out, machine, class, NULL, err);
    if (!status)
        (*out)->record->hides_items = true;
    return status;
}

enum phema_status pickle_rebuild_tensor(struct pickle_node **out, struct pickle_machine *machine,
                                        const struct pickle_global *function,
                                        const struct pickle_node *args, struct phema_error *err)
{
    if (function->action == ACTION_FROM_TYPE) {
        /* (function, type, args, state): one level, since the function must be another one */
        if (args->items.n != 4 || !pickle_is(arg(args, 0), PICKLE_GLOBAL) ||
            !pickle_is(arg(args, 1), PICKLE_GLOBAL) || !pickle_is(arg(args, 2), PICKLE_TUPLE))
            return fail_expected(err, "a function, a type, arguments and a state");
        if (arg(args, 0)->global->action == ACTION_WRAPPER &&
            arg(args, 1)->global->action == ACTION_DTENSOR_CLASS)
            return make_dtensor(out, machine, arg(args, 2), arg(args, 3), err);
        if (arg(args, 1)->global->action != ACTION_TENSOR_CLASS ||
            arg(args, 0)->global->action == ACTION_WRAPPER)
            return make_subclass(out, machine, args, err);
        function = arg(args, 0)->global;
        args = arg(args, 2);
    }
    switch (function->action) {
    case ACTION_TENSOR_V1:
    case ACTION_TENSOR_V2:
    case ACTION_TENSOR_V3:
        return make_tensor(out, machine, function->action, args, err);
    case ACTION_PARAMETER:
        return read_parameter(out, args, 3, err);
    case ACTION_PARAMETER_WITH_STATE:
        return read_parameter(out, args, 4, err);
    case ACTION_DEVICE_TENSOR:
        return read_device_tensor(out, args, err);
    case ACTION_UNREAD:
        return pickle_make_opaque(out, machine, function, NULL, err);
    default:
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' makes no tensor", function->name);
    }
}
