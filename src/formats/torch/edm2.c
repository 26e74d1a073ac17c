// SPDX-License-Identifier: Apache-2.0
/* edm2.c - EDM2 network pickles, network-snapshot-*.pkl (docs/formats/edm2.md). Each storage is a
 * whole file of the legacy format inside the pickle. Tensors are listed at their places in the
 * outer file. */
#include "format.h"
#include "torch/torch.h"

/* The file while its pickle is read. */
struct outer {
    struct phema_span content;
    const struct phema_checkpoint_options *options;
    struct phema_arena arena; /* nodes and storages */
    size_t loaded_end;        /* of the last inner file */
    size_t loaded_bytes;      /* of all inner files */
};

static bool probe(struct phema_span content)
{
    return content.size >= 2 && content.data[0] == 0x80 && content.data[1] >= 2 &&
           content.data[1] <= 5;
}

/* The file has one storage as its object, and nothing else. */
static enum phema_status read_inner(struct pickle_storage **out, struct outer *outer,
                                    struct torch_legacy *inner, struct phema_span bytes,
                                    size_t start, struct phema_error *err)
{
    enum phema_status status = torch_legacy_read(inner, bytes, start, outer->options, err);
    if (status)
        return status;
    if (inner->root->kind != PICKLE_STORAGE || inner->storages.n != 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected one storage as its object, found something else");
    if (inner->used != bytes.size)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu bytes behind its storage, expected none",
                          bytes.size - inner->used);
    *out = phema_arena_alloc(&outer->arena, sizeof(**out));
    if (!*out)
        return phema_fail_memory(err);
    **out = *inner->root->storage;
    return PHEMA_OK;
}

/* Picklers write such bytes once, right before their use. The order of the file keeps the work
 * linear. */
static enum phema_status load_storage(struct pickle_storage **out, void *context,
                                      struct phema_span bytes, struct phema_error *err)
{
    struct outer *outer = context;
    size_t start = (size_t)(bytes.data - outer->content.data);
    if (start < outer->loaded_end)
        return phema_fail(err, PHEMA_ERR_FILE, "the bytes are loaded twice, or out of order");
    outer->loaded_end = start + bytes.size;
    outer->loaded_bytes += bytes.size;

    struct torch_legacy inner;
    enum phema_status status = read_inner(out, outer, &inner, bytes, start, err);
    torch_legacy_clear(&inner);
    return status ? phema_fail_in(err, status, "file of %zu bytes at byte %zu", bytes.size, start)
                  : PHEMA_OK;
}

static enum phema_status read_outer(struct outer *outer, struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    const struct pickle_host host = {
        .options = outer->options, .load_storage = load_storage, .context = outer};
    struct pickle_node *root = NULL;
    size_t used = 0;
    enum phema_status status = pickle_read(&root, &used, outer->content, &outer->arena, &host, err);
    if (status)
        return status;
    if (used != outer->content.size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is a plain pickle with %zu bytes behind its end, expected none",
                          outer->content.size - used);
    /* Next to its network, a file of EDM2 has settings, the encoder, augmentation and the loss.
     * Tensors of these are not part of the model. */
    const char *network = "ema";
    if (root->kind != PICKLE_DICT || !pickle_is(pickle_find(root, network), PICKLE_MODULE))
        network = NULL;
    status = torch_list(checkpoint, root, network, NULL, used - outer->loaded_bytes, err);
    if (status || checkpoint->n_tensors)
        return status;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "is a plain pickle without tensors of torch in dicts, lists or modules; "
                      "save the state_dict as safetensors");
}

static enum phema_status open_plain_pickle(struct phema_checkpoint *checkpoint,
                                           const struct phema_checkpoint_options *options,
                                           struct phema_error *err)
{
    struct outer outer = {.content = checkpoint_content(checkpoint, 0), .options = options};
    enum phema_status status = read_outer(&outer, checkpoint, err);
    phema_arena_clear(&outer.arena);
    return status;
}

const struct phema_format pickle_format = {
    .info = {.name = "pickle",
             .extensions = (const struct phema_extension[]){{".pkl", PHEMA_NAMES_FILE}, {NULL, 0}},
             .output = PHEMA_OUTPUT_COPY,
             .can_be_template = true},
    .probe = probe,
    .open = open_plain_pickle,
};
