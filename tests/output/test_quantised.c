// SPDX-License-Identifier: Apache-2.0
/* Recognition of codes and scale of one quantised tensor. Names and dtypes are those of published
 * checkpoints and of the programs that write them, which src/series/quantised.c lists. */
#include "drafts.h"

struct named {
    const char *name, *dtype;
};

/* A file of tensors of four elements. */
static void write_tensors(const char *file, const struct named *tensors, size_t n)
{
    struct phema_strbuf json = {0};
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        enum phema_dtype dtype = PHEMA_BOOL;
        assert_true(phema_dtype_from_name(&dtype, tensors[i].dtype, strlen(tensors[i].dtype)));
        uint64_t end = at + phema_dtype_bytes(dtype, 4);
        phema_strbuf_printf(&json,
                            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[%d,%d]}",
                            i ? "," : "{", tensors[i].name, tensors[i].dtype, (int)at, (int)end);
        at = end;
    }
    phema_strbuf_puts(&json, "}");
    write_plain(file, json.data, at);
    phema_strbuf_clear(&json);
}

static void refuse_pair(const struct named *codes, const struct named *scale, const char *file)
{
    char part[256];
    (void)snprintf(part, sizeof(part), "tensor '%s': is quantised (%s codes, scale in '%s')",
                   codes->name, codes->dtype, scale->name);
    refuse(&(struct wanted){.snapshots = file, .out = "o.safetensors"}, PHEMA_ERR_INPUTS, part);
}

static void accept_tensors(const struct named *tensors, size_t n)
{
    struct made made;
    write_tensors("file", tensors, n);
    accept(&made, &(struct wanted){.snapshots = "file", .out = "o.safetensors"});
    clear_made(&made);
}

static void codes_and_scale_are_recognised_by_name(void **state)
{
    (void)state;
    static const struct named pairs[][2] = {
        {{"model.layers.3.mlp.up_proj.weight", "F8_E4M3"},
         {"model.layers.3.mlp.up_proj.weight_scale_inv", "F32"}},
        {{"m.experts.gate_up_proj", "F8_E4M3"}, {"m.experts.gate_up_proj_scale_inv", "F32"}},
        {{"m.experts.gate_up_proj", "F8_E4M3"}, {"m.experts.gate_up_proj_activation_scale", "F32"}},
        {{"m.q_proj.weight", "F8_E4M3"}, {"m.q_proj.weight_scale", "BF16"}},
        {{"m.q_proj.weight", "F8_E4M3"}, {"m.q_proj.weight_scale", "U8"}}, /* E8M0, as bytes */
        {{"m.q_proj.weight", "F8_E4M3"}, {"m.q_proj.input_scale", "F32"}},
        {{"m.q_proj.weight", "F8_E4M3"}, {"m.q_proj.input_scale_ub", "F32"}},
        {{"m.q_proj.weight", "I8"}, {"m.q_proj.weight_scale", "F32"}},
        {{"m.q_proj.weight_packed", "I32"}, {"m.q_proj.weight_scale", "BF16"}},
        {{"m.q_proj.weight_packed", "U8"}, {"m.q_proj.weight_scale", "F8_E4M3"}},
        {{"m.q_proj.weight_packed", "U8"}, {"m.q_proj.weight_global_scale", "F32"}},
        {{"m.q_proj.weight", "U8"}, {"m.q_proj.weight_scale_2", "F32"}},
        {{"layers.0.attn.wq_a.weight", "F8_E4M3"}, {"layers.0.attn.wq_a.scale", "F8_E8M0"}},
        {{"layers.0.attn.wq_a.weight", "F8_E4M3"}, {"layers.0.attn.wq_a.scale", "F32"}},
        {{"layers.0.ffn.experts.7.w1.weight", "I8"},
         {"layers.0.ffn.experts.7.w1.scale", "F8_E8M0"}},
        {{"m.w.weight", "F4"}, {"m.w.weight_scale", "F8_E8M0"}},
        {{"double_blocks.0.img_attn.qkv.weight", "F8_E4M3"},
         {"double_blocks.0.img_attn.qkv.scale_weight", "F32"}},
        {{"fc1.weight", "F8_E4M3"}, {"fc1.scale_input", "F32"}},
        {{"layers.0.attention.wq.weight", "F8_E4M3"},
         {"layers.0.attention.wq.qscale_weight", "BF16"}},
        {{"layers.0.attention.wq.weight", "F8_E4M3"}, {"layers.0.attention.wq.qscale_act", "BF16"}},
        {{"m.k_proj._weight_qdata", "F8_E4M3"}, {"m.k_proj._weight_scale", "F32"}},
        {{"0.weight:qdata", "F8_E4M3"}, {"0.weight:scale", "F32"}},
        {{"m.w.weight._data", "F8_E4M3"}, {"m.w.weight._scale", "BF16"}},
        {{"m.w.weight._data", "I8"}, {"m.w.weight._scale", "BF16"}},
        {{"m.w.float8_data", "F8_E4M3"}, {"m.w.scale", "F32"}},
        {{"m.w.qweight", "I32"}, {"m.w.scales", "F16"}},
        {{"m.w.qweight", "I8"}, {"m.w.wscales", "BF16"}},
        {{"m.w.W_q", "U8"}, {"m.w.scale", "F16"}},
        {{"m.w.weight", "I8"}, {"m.w.SCB", "F32"}},
        {{"m.w.weight", "U8"}, {"m.w.weight.absmax", "F32"}},
        {{"m.w.weight", "U8"}, {"m.w.weight.nested_absmax", "F32"}},
        {{"block.0.mlp.mlp1_weight.blocks", "U8"}, {"block.0.mlp.mlp1_weight.scales", "BF16"}},
        {{"weight", "F8_E5M2"}, {"scale", "F32"}},
        {{"w", "F8_E4M3FNUZ"}, {"w_scale", "F32"}},
        {{"w", "F8_E5M2FNUZ"}, {"w.scales", "F16"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        const struct named both[] = {pairs[i][0], pairs[i][1]};
        const struct named turned[] = {pairs[i][1], pairs[i][0]};
        write_tensors("file", both, 2);
        refuse_pair(&pairs[i][0], &pairs[i][1], "file");
        write_tensors("file", turned, 2);
        refuse_pair(&pairs[i][0], &pairs[i][1], "file");
        accept_tensors(&pairs[i][0], 1); /* each of them alone is not quantised */
        accept_tensors(&pairs[i][1], 1);
    }
}

static void other_tensors_are_averaged(void **state)
{
    (void)state;
    static const struct named pairs[][2] = {
        {{"norm.weight", "BF16"}, {"norm.scale", "BF16"}},
        {{"blocks.0.norm.weight", "F32"}, {"blocks.0.norm.weight_scale", "F32"}},
        {{"txt_attn.proj.weight", "F8_E4M3"}, {"txt_attn.norm.query_norm.scale", "BF16"}},
        {{"positional_embedding", "F8_E4M3"}, {"logit_scale", "F32"}},
        {{"model.visual.proj", "F8_E4M3"}, {"model.logit_scale", "F32"}},
        {{"attn.relative_position_index", "I64"}, {"attn.logit_scale", "F32"}},
        {{"attn.weight", "F8_E4M3"}, {"attn.logit_scale", "F32"}},
        {{"bn.num_batches_tracked", "I64"}, {"bn.scale", "F32"}},
        {{"q.zero_point", "I32"}, {"q.scale", "F32"}},
        {{"m.weight", "F8_E4M3"}, {"m.scales_of_fish", "F32"}},
        {{"m.weight", "F8_E4M3"}, {"m.weightscale", "F32"}},
        {{"m.weight", "F8_E4M3"}, {"n.weight_scale", "F32"}},
        {{"m.weight", "F8_E4M3"}, {"m.bias", "BF16"}},
        {{"m.weight", "F8_E8M0"}, {"m.weight_scale", "F32"}},
        /* integers are copied from the newest snapshot, so the two stay together */
        {{"mlp.experts.down_proj_blocks", "U8"}, {"mlp.experts.down_proj_scales", "U8"}},
        {{"m.weight", "U8"}, {"m.weight.absmax", "U8"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        const struct named both[] = {pairs[i][0], pairs[i][1]};
        accept_tensors(both, 2);
    }
    /* names that consist of such words alone, of any length */
    char name[5000];
    for (size_t at = 0; at < sizeof(name) - 6; at += 6)
        memcpy(name + at, "scale_", 7);
    name[sizeof(name) - 6] = '\0';
    const struct named words[] = {{name, "F32"}, {"weight", "F32"}, {"_", "F8_E4M3"}, {".", "F32"}};
    accept_tensors(words, ARRAY_LEN(words));
}

static const struct named quantised[] = {
    {"a.weight", "F8_E4M3"}, {"a.weight_scale", "F32"}, {"b.bias", "BF16"}};

/* Excluding one tensor of a pair is not enough: the other must not be averaged either. */
static void excluding_both_tensors_of_a_pair_is_accepted(void **state)
{
    (void)state;
    write_tensors("file", quantised, ARRAY_LEN(quantised));
    struct wanted wanted = {.snapshots = "file", .out = "o.safetensors", .exclude = "^a"};
    struct made made;
    accept(&made, &wanted);
    assert_int_equal(made.plan->series->n_tensors, 1);
    clear_made(&made);
    wanted.exclude = "scale$";
    refuse(&wanted, PHEMA_ERR_INPUTS, "scale in 'a.weight_scale'");
    wanted.exclude = "weight$";
    refuse(&wanted, PHEMA_ERR_INPUTS, "scale in 'a.weight_scale'");
    accept(&made,
           &(struct wanted){.snapshots = "file", .out = "o.safetensors", .is_conversion = true});
    assert_int_equal(made.plan->series->n_tensors, 3);
    clear_made(&made);
}

/* Pairs are found below a key too. */
static void a_subtree_has_its_own_pairs(void **state)
{
    (void)state;
    static const struct named nested[] = {{"ema.a.weight", "F8_E4M3"},
                                          {"ema.a.weight_scale", "F32"},
                                          {"raw.a.weight", "F32"},
                                          {"raw.a.scale", "F32"}};
    write_tensors("file", nested, ARRAY_LEN(nested));
    refuse(&(struct wanted){.snapshots = "file", .out = "o.safetensors", .key = "ema"},
           PHEMA_ERR_INPUTS, "tensor 'ema.a.weight': is quantised");
    struct made made;
    accept(&made, &(struct wanted){.snapshots = "file", .out = "o.safetensors", .key = "raw"});
    clear_made(&made);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codes_and_scale_are_recognised_by_name),
    cmocka_unit_test(other_tensors_are_averaged),
    cmocka_unit_test(excluding_both_tensors_of_a_pair_is_accepted),
    cmocka_unit_test(a_subtree_has_its_own_pairs),
};
TEST_GROUP(tests)
