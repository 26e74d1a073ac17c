// SPDX-License-Identifier: Apache-2.0
/* allowlist.c - The globals a pickle may name, and what each becomes. Nothing is looked up or called
 * for any name; what others make is opaque. Names that run programs are refused even if the pickle
 * only mentions or drops them: the file is a trap for the next reader. */
#include <string.h>

#include "pickle/machine.h"

static const struct rule {
    const char *name;
    enum pickle_action action;
    const char *why; /* of ACTION_UNREAD */
} rules[] = {
    {"collections.OrderedDict", ACTION_DICT, NULL},
    {"collections.defaultdict", ACTION_DICT, NULL},
    {"collections.Counter", ACTION_DICT, NULL},
    {"collections.deque", ACTION_UNHASHABLE, NULL},
    {"dnnlib.util.EasyDict", ACTION_DICT, NULL},
    {"torch_utils.persistence._reconstruct_persistent_obj", ACTION_PERSISTENT, NULL},
    {"torch.storage._load_from_bytes", ACTION_LOAD_STORAGE, NULL},

    {"torch._utils._rebuild_tensor", ACTION_TENSOR_V1, NULL},
    {"torch._utils._rebuild_tensor_v2", ACTION_TENSOR_V2, NULL},
    {"torch._utils._rebuild_tensor_v3", ACTION_TENSOR_V3, NULL},
    {"torch._utils._rebuild_parameter", ACTION_PARAMETER, NULL},
    {"torch._utils._rebuild_parameter_with_state", ACTION_PARAMETER_WITH_STATE, NULL},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", ACTION_DEVICE_TENSOR, NULL},
    {"torch._tensor._rebuild_from_type_v2", ACTION_FROM_TYPE, NULL},
    {"torch.Tensor", ACTION_TENSOR_CLASS, NULL},
    {"torch.nn.parameter.Parameter", ACTION_TENSOR_CLASS, NULL},
    {"torch.nn.parameter.Buffer", ACTION_TENSOR_CLASS, NULL},

    {"torch._utils._rebuild_wrapper_subclass", ACTION_WRAPPER, NULL},
    {"torch.distributed.tensor.DTensor", ACTION_DTENSOR_CLASS, NULL},
    {"torch.distributed.tensor._dtensor_spec.DTensorSpec", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.tensor._dtensor_spec.TensorMeta", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.tensor._dtensor_spec.ShardOrderEntry", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.tensor.placement_types.Shard", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.tensor.placement_types.Replicate", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.tensor.placement_types._StridedShard", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.device_mesh.DeviceMesh", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed._mesh_layout._MeshLayout", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed._mesh_layout._FlatLayout", ACTION_RECORD_CLASS, NULL},

    {"torch._utils._rebuild_sparse_tensor", ACTION_UNREAD,
     "sparse tensors are not read; save them after .to_dense()"},
    {"torch._utils._rebuild_sparse_csr_tensor", ACTION_UNREAD,
     "sparse tensors are not read; save them after .to_dense()"},
    {"torch._utils._rebuild_qtensor", ACTION_UNREAD,
     "quantised tensors are not read; save them after .dequantize()"},
    {"torch._utils._rebuild_nested_tensor", ACTION_UNREAD, "nested tensors are not read"},
    {"torch._utils._rebuild_meta_tensor_no_storage", ACTION_UNREAD,
     "meta tensors have no data to read"},
    {"torch._utils._rebuild_device_tensor_from_numpy", ACTION_UNREAD,
     "tensors kept as numpy arrays are not read"},

    {"torch.storage.UntypedStorage", ACTION_UNTYPED_STORAGE_CLASS, NULL},
    {"torch.UntypedStorage", ACTION_UNTYPED_STORAGE_CLASS, NULL},
    {"torch.storage.TypedStorage", ACTION_INERT, NULL},
    {"torch.Size", ACTION_SIZE, NULL},
    {"torch.device", ACTION_INERT, NULL},
    {"torch.serialization._get_layout", ACTION_INERT, NULL},
    {"_codecs.encode", ACTION_ENCODE, NULL},

    {"numpy.dtype", ACTION_INERT, NULL},
    {"numpy.ndarray", ACTION_INERT, NULL},
    {"numpy.core.multiarray._reconstruct", ACTION_UNHASHABLE, NULL},
    {"numpy._core.multiarray._reconstruct", ACTION_UNHASHABLE, NULL},
    {"numpy.core.multiarray.scalar", ACTION_SCALAR, NULL},
    {"numpy._core.multiarray.scalar", ACTION_SCALAR, NULL},
    {"numpy.core.numeric._frombuffer", ACTION_UNHASHABLE, NULL},
    {"numpy._core.numeric._frombuffer", ACTION_UNHASHABLE, NULL},
    {"argparse.Namespace", ACTION_UNHASHABLE, NULL},
    {"pathlib.PosixPath", ACTION_INERT, NULL},
    {"pathlib._local.PosixPath", ACTION_INERT, NULL},
    {"datetime.date", ACTION_INERT, NULL},
    {"datetime.datetime", ACTION_INERT, NULL},
    {"datetime.time", ACTION_INERT, NULL},
    {"datetime.timedelta", ACTION_INERT, NULL},
    {"datetime.timezone", ACTION_INERT, NULL},
    {"copyreg._reconstructor", ACTION_INERT, NULL},
    {"copy_reg._reconstructor", ACTION_INERT, NULL},
};

/* Names that only the metadata of a distributed checkpoint may mention. TensorProperties and the
 * memory format have moved: the longer names are those before torch 2.4. */
static const struct rule distributed[] = {
    {"torch.distributed.checkpoint.metadata.Metadata", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata.MetadataIndex", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata.TensorStorageMetadata", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata.BytesStorageMetadata", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata.ChunkStorageMetadata", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata.TensorProperties", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed._shard.sharded_tensor.metadata.TensorProperties", ACTION_RECORD_CLASS,
     NULL},
    {"torch.distributed.checkpoint.metadata.StorageMeta", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.filesystem._StorageInfo", ACTION_RECORD_CLASS, NULL},
    {"torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING", ACTION_INERT, NULL},
    {"torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING", ACTION_INERT, NULL},
    /* the plans that Megatron keeps in all_local_plans, which nothing here reads */
    {"torch.distributed.checkpoint.planner.SavePlan", ACTION_INERT, NULL},
    {"torch.distributed.checkpoint.planner.WriteItem", ACTION_INERT, NULL},
    {"torch.distributed.checkpoint.planner.WriteItemType", ACTION_INERT, NULL},
    {"torch.distributed.checkpoint.planner.TensorWriteData", ACTION_INERT, NULL},
};

/* Names in builtins; protocol 2 calls the module __builtin__ and some by their old names. */
static const struct rule builtins[] = {
    {"set", ACTION_SET, NULL},         {"frozenset", ACTION_SET, NULL},
    {"dict", ACTION_DICT, NULL},       {"bytearray", ACTION_UNHASHABLE, NULL},
    {"complex", ACTION_INERT, NULL},   {"list", ACTION_UNHASHABLE, NULL},
    {"tuple", ACTION_INERT, NULL},     {"int", ACTION_INERT, NULL},
    {"float", ACTION_INERT, NULL},     {"str", ACTION_INERT, NULL},
    {"bool", ACTION_INERT, NULL},      {"bytes", ACTION_INERT, NULL},
    {"object", ACTION_INERT, NULL},    {"slice", ACTION_INERT, NULL},
    {"range", ACTION_INERT, NULL},     {"xrange", ACTION_INERT, NULL},
    {"unicode", ACTION_INERT, NULL},   {"long", ACTION_INERT, NULL},
    {"getattr", ACTION_UNKNOWN, NULL}, /* a method, as Python 2's protocol writes it */
};

/* torch.NAME, a dtype, and torch.STORAGEStorage, the class of storages of it. */
static const struct {
    const char *name, *storage; /* storage NULL: only untyped storages hold it */
    enum phema_dtype dtype;
} dtypes[] = {
    {"bool", "BoolStorage", PHEMA_BOOL},
    {"uint8", "ByteStorage", PHEMA_U8},
    {"int8", "CharStorage", PHEMA_I8},
    {"uint16", NULL, PHEMA_U16},
    {"int16", "ShortStorage", PHEMA_I16},
    {"uint32", NULL, PHEMA_U32},
    {"int32", "IntStorage", PHEMA_I32},
    {"uint64", NULL, PHEMA_U64},
    {"int64", "LongStorage", PHEMA_I64},
    {"float16", "HalfStorage", PHEMA_F16},
    {"bfloat16", "BFloat16Storage", PHEMA_BF16},
    {"float32", "FloatStorage", PHEMA_F32},
    {"float64", "DoubleStorage", PHEMA_F64},
    {"complex64", "ComplexFloatStorage", PHEMA_C64},
    {"complex128", "ComplexDoubleStorage", PHEMA_C128},
    {"float8_e4m3fn", NULL, PHEMA_F8_E4M3},
    {"float8_e5m2", NULL, PHEMA_F8_E5M2},
    {"float8_e8m0fnu", NULL, PHEMA_F8_E8M0},
    {"float8_e4m3fnuz", NULL, PHEMA_F8_E4M3FNUZ},
    {"float8_e5m2fnuz", NULL, PHEMA_F8_E5M2FNUZ},
};

/* The rest of name after prefix, or NULL. */
static const char *after(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

static const struct rule *find_rule(const struct rule *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i].name) == 0)
            return &list[i];
    return NULL;
}

static bool find_dtype(struct pickle_global *out, const char *name)
{
    const char *inner = after(name, "torch.");
    if (!inner)
        return false;
    const char *storage = after(name, "torch.cuda.");
    if (!storage)
        storage = inner;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        bool is_dtype = strcmp(inner, dtypes[i].name) == 0;
        if (is_dtype || (dtypes[i].storage && strcmp(storage, dtypes[i].storage) == 0)) {
            out->action = is_dtype ? ACTION_DTYPE : ACTION_STORAGE_CLASS;
            out->dtype = dtypes[i].dtype;
            return true;
        }
    }
    if (strcmp(inner, "float4_e2m1fn_x2") == 0) {
        out->action = ACTION_PACKED_DTYPE;
        out->dtype = PHEMA_F4;
        return true;
    }
    if (after(storage, "QInt") || after(storage, "QUInt") || after(inner, "qint") ||
        after(inner, "quint")) {
        out->action = ACTION_UNREAD;
        out->why = "quantised tensors are not read; save them after .dequantize()";
        return true;
    }
    return false;
}

/* torch.nn.modules.FILE.Class; lower-case names there are functions. */
static bool is_module_class(const char *name)
{
    const char *inner = after(name, "torch.nn.modules.");
    const char *dot = inner ? strrchr(inner, '.') : NULL;
    if (!dot || dot[1] < 'A' || dot[1] > 'Z')
        return false;
    for (; *inner; inner++) {
        char lower = (char)(*inner | 0x20);
        if ((lower < 'a' || lower > 'z') && (*inner < '0' || *inner > '9') && *inner != '_' &&
            *inner != '.')
            return false;
    }
    return true;
}

/* Modules whose functions run programs or code, and no checkpoint needs. Others could do so, too:
 * the list is a courtesy to the next reader, not a guard of this one. */
static bool is_trap(const char *name)
{
    static const char *const modules[] = {
        "builtins.",   "__builtin__.", "os.",   "posix.",      "nt.",        "sys.",
        "subprocess.", "commands.",    "pty.",  "runpy.",      "importlib.", "shutil.",
        "socket.",     "ctypes.",      "code.", "webbrowser.",
    };
    for (size_t i = 0; i < ARRAY_LEN(modules); i++)
        if (after(name, modules[i]))
            return true;
    return false;
}

static const struct rule *find_known(const char *name, bool is_distributed)
{
    const struct rule *rule =
        is_distributed ? find_rule(distributed, ARRAY_LEN(distributed), name) : NULL;
    if (!rule)
        rule = find_rule(rules, ARRAY_LEN(rules), name);
    const char *builtin = after(name, "builtins.");
    if (!builtin)
        builtin = after(name, "__builtin__.");
    return rule || !builtin ? rule : find_rule(builtins, ARRAY_LEN(builtins), builtin);
}

bool pickle_global_find(struct pickle_global *out, const char *name, const struct pickle_host *host)
{
    const struct phema_checkpoint_options *options = host->options;
    const struct rule *rule = find_known(name, host->is_distributed);
    if (rule) {
        out->action = rule->action;
        out->why = rule->why;
        return true;
    }
    if (find_dtype(out, name))
        return true;
    if (is_module_class(name)) {
        out->action = ACTION_MODULE_CLASS;
        return true;
    }
    out->action = ACTION_UNKNOWN;
    for (size_t i = 0; options && i < options->n_allow_globals; i++)
        if (strcmp(name, options->allow_globals[i]) == 0)
            out->action = ACTION_ALLOWED;
    return out->action == ACTION_ALLOWED || !is_trap(name);
}
