// SPDX-License-Identifier: Apache-2.0
/* File names: their formats, and how the formats can be used. */
#include "phema/formats.h"

#include <string.h>

#include "support.h"

static const struct {
    const char *path, *format, *extension; /* NULL: no format has this name */
    unsigned uses;
} names[] = {
    {"a.safetensors", "safetensors", ".safetensors", PHEMA_NAMES_FILE | PHEMA_NAMES_SELF_DESCRIBED},
    {"dir.pt/a.safetensors.zst", "safetensors.zst", ".safetensors.zst", PHEMA_NAMES_FILE},
    {"a.pt", "torch-zip", ".pt", PHEMA_NAMES_FILE},
    {"a.pth", "torch-zip", ".pth", PHEMA_NAMES_FILE},
    {"a.pth.tar", "torch-zip", ".pth.tar", PHEMA_NAMES_FILE},
    {"a.ckpt", "torch-zip", ".ckpt", PHEMA_NAMES_FILE},
    {"a.pkl", "pickle", ".pkl", PHEMA_NAMES_FILE},
    {"a.pt.zst", "safetensors.zst", ".zst", PHEMA_NAMES_SNAPSHOT},
    {"model.safetensors.index.json", "sharded", ".index.json", PHEMA_NAMES_CHECKPOINT},
    {"pytorch_model.bin", "torch-zip", "model.bin", PHEMA_NAMES_CHECKPOINT},
    {"vocab.bin", "torch-zip", ".bin", 0},
    {"__0_0.distcp", "dcp", ".distcp", 0},
    {"manifest.json", NULL, NULL, 0},
    {"a.pt/readme", NULL, NULL, 0},
    {"apt", NULL, NULL, 0},
    {"a.PT", NULL, NULL, 0},
    {"", NULL, NULL, 0},
};

static void a_name_stands_for_one_format(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *extension = NULL;
        const struct phema_format_info *format =
            phema_format_from_path(&extension, names[i].path, 0);
        assert_int_equal(format != NULL, names[i].format != NULL);
        if (!format)
            continue;
        assert_string_equal(format->name, names[i].format);
        assert_string_equal(extension, names[i].extension);
    }
}

static void a_name_has_the_uses_of_its_extension(void **state)
{
    (void)state;
    static const unsigned uses[] = {PHEMA_NAMES_SNAPSHOT, PHEMA_NAMES_CHECKPOINT,
                                    PHEMA_NAMES_OUTPUT, PHEMA_NAMES_SELF_DESCRIBED};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        for (size_t u = 0; u < ARRAY_LEN(uses); u++) {
            const struct phema_format_info *format =
                phema_format_from_path(NULL, names[i].path, uses[u]);
            assert_int_equal(format != NULL, (names[i].uses & uses[u]) != 0);
            assert_true(!format || phema_format_has_extension(format, names[i].path, uses[u]));
        }
    }
}

static void names_of_tensors_include_formats_that_are_not_read(void **state)
{
    (void)state;
    assert_true(phema_path_names_tensors("a.gguf"));
    assert_true(phema_path_names_tensors("a.onnx"));
    assert_true(phema_path_names_tensors("tf_model.h5"));
    assert_true(phema_path_names_tensors("flax_model.msgpack"));
    assert_true(phema_path_names_tensors("vocab.bin"));
    assert_false(phema_path_names_tensors("config.json"));
    assert_false(phema_path_names_tensors("tokenizer.model"));
}

/* A name can select an output format, and so can every template. */
static void outputs_and_templates_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum phema_format_output output;
        bool can_be_template;
    } outputs[] = {{"a.safetensors", PHEMA_OUTPUT_NEW, true},
                   {"a.safetensors.zst", PHEMA_OUTPUT_COMPRESSED, false},
                   {"a.pt", PHEMA_OUTPUT_COPY, true},
                   {"a.pkl", PHEMA_OUTPUT_COPY, true}};
    for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
        const struct phema_format_info *format =
            phema_format_from_path(NULL, outputs[i].path, PHEMA_NAMES_OUTPUT);
        assert_non_null(format);
        assert_int_equal(format->output, outputs[i].output);
        assert_int_equal(format->can_be_template, outputs[i].can_be_template);
    }
    assert_string_equal(phema_format_extension("safetensors"), ".safetensors");
    assert_null(phema_format_extension("tar"));
    assert_null(phema_format_extension("none"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_stands_for_one_format),
    cmocka_unit_test(a_name_has_the_uses_of_its_extension),
    cmocka_unit_test(names_of_tensors_include_formats_that_are_not_read),
    cmocka_unit_test(outputs_and_templates_have_names),
};
TEST_GROUP(tests)
