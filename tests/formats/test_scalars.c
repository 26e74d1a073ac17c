// SPDX-License-Identifier: Apache-2.0
/* Numbers stored next to the tensors: the listed ones, their names, and the cost of hostile
 * containers. */
#include "phema/formats.h"

#include "build.h"

#define PROTO            "\x80\x02"
#define TEXT(size, text) "X" size "\0\0\0" text
#define INT(n)           "K" n
#define A_TWENTIETH      "G\x3F\xA9\x99\x99\x99\x99\x99\x9A" /* 0.05, big-endian */
#define MINUS_2_5        "G\xC0\x04\0\0\0\0\0\0"

static struct phema_checkpoint *open_pickle(const void *pickle, size_t size)
{
    struct phema_strbuf file = {0};
    put_torch(&file, pickle, size, 8);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(open_bytes(&checkpoint, file.data, file.size, &err), &err);
    phema_strbuf_clear(&file);
    return checkpoint;
}

/* "name=number name=number", in the order of the list; closes the checkpoint */
static void check_values(struct phema_checkpoint *checkpoint, const char *wanted)
{
    struct phema_strbuf values = {0};
    put_text(&values, "");
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint); i++) {
        const struct phema_value *value = &phema_checkpoint_values(checkpoint)[i];
        put_text(&values, i ? " " : "");
        put(&values, value->name, value->name_size);
        phema_strbuf_printf(&values, "=%.15g", value->number);
    }
    assert_string_equal(values.data, wanted);
    phema_strbuf_clear(&values);
    phema_checkpoint_close(checkpoint);
}

#define CHECK(pickle, wanted) check_values(open_pickle(pickle, sizeof(pickle) - 1), wanted)

static void check_fixture(const char *name, const char *wanted)
{
    char *path = support_fixture(name);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    free(path);
    check_values(checkpoint, wanted);
}

/* Level by level, each in the order of the file. */
static void numbers_are_named_like_tensors(void **state)
{
    (void)state;
    CHECK(PROTO "}(" TEXT("\4", "step") INT("\7")
              TEXT("\3", "ema") "}" TEXT("\4", "stds") "](" A_TWENTIETH MINUS_2_5 "es" INT("\3")
                  INT("\1") INT("\2") "\x86u.",
          "step=7 3.0=1 3.1=2 ema.stds.0=0.05 ema.stds.1=-2.5");
    /* booleans, text, None and bytes are not numbers; sets have no order */
    CHECK(PROTO "}(" TEXT("\1", "a") "\x88" TEXT("\1", "b") TEXT("\1", "1")
              TEXT("\1", "c") "N" TEXT("\1", "d") INT("\1") "u.",
          "d=1");
    /* keys that cannot be part of a name, and empty ones */
    CHECK(PROTO "}(" INT("\1") "\x85" INT("\2") TEXT("\0", "") INT("\3") "u.", "=3");
    CHECK(PROTO INT("\5") ".", "");
    CHECK(PROTO "]" INT("\5") "a.", "0=5");
}

#define SCALAR        "cnumpy.core.multiarray\nscalar\n"
#define DTYPE         "cnumpy\ndtype\n" TEXT("\2", "i8") "\x89\x88\x87R"
#define ENCODED(text) "c_codecs\nencode\n" text TEXT("\6", "latin1") "\x86R"

/* Their bytes are bytes, or a text in protocol 2; what can be a double is no integer. */
static void integers_of_numpy_are_numbers(void **state)
{
    (void)state;
    CHECK(PROTO "}(" TEXT("\1", "a") SCALAR DTYPE "C\10\x2C\1\0\0\0\0\0\0\x86R" TEXT("\1", "b")
              SCALAR DTYPE ENCODED(TEXT("\x9", "\xC3\x88\1\0\0\0\0\0\0")) "\x86R" TEXT("\1", "c")
                  SCALAR DTYPE "C\10\0\0\0\0\0\0\xF0\x3F\x86R" TEXT("\1", "d") SCALAR DTYPE
          "C\4\1\0\0\0\x86R" TEXT("\1", "e")
              SCALAR DTYPE ENCODED(TEXT("\x9", "\1\0\0\0\0\0\0\0\0")) "\x86Ru.",
          "a=300 b=456");
}

/* Values are printed as in Python; integers beyond 64 bits are left out. */
static void files_of_torch(void **state)
{
    (void)state;
    check_fixture("legacy/nested.pt", "step=1234 lr=0.0001 neg=-5 size.0=2 size.1=3");
    check_fixture("edm2_state/training-state-0000008.pt",
                  "state.cur_nimg=8192 state.total_elapsed_time=12.5 loss_fn.P_mean=-0.4 "
                  "loss_fn.P_std=1 loss_fn.sigma_data=0.5 ema.stds.0=0.05 ema.stds.1=0.1 "
                  "optimizer.param_groups.0.lr=0.01 optimizer.param_groups.0.eps=1e-08 "
                  "optimizer.param_groups.0.betas.0=0.9 optimizer.param_groups.0.betas.1=0.99 "
                  "optimizer.param_groups.0.params.0=0 optimizer.param_groups.0.params.1=1 "
                  "optimizer.param_groups.0.params.2=2 optimizer.param_groups.0.params.3=3 "
                  "optimizer.param_groups.0.params.4=4 optimizer.param_groups.0.params.5=5");
}

static const struct phema_value *find(const struct phema_checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint); i++) {
        const struct phema_value *value = &phema_checkpoint_values(checkpoint)[i];
        if (value->name_size == strlen(name) && memcmp(value->name, name, value->name_size) == 0)
            return value;
    }
    return NULL;
}

/* The long list of an optimizer's parameters comes first in the file and last in the list. */
static void numbers_near_the_root_are_kept(void **state)
{
    (void)state;
    static const char head[] = PROTO "}(" TEXT("\5", "optim") "]](";
    static const char tail[] = "ea" TEXT("\3", "ema") "}" TEXT("\4", "stds") INT("\1") "su.";
    struct phema_strbuf pickle = {0};
    put(&pickle, head, sizeof(head) - 1);
    for (unsigned i = 0; i < 5000; i++) {
        put_text(&pickle, "M");
        put_int(&pickle, i, 2);
    }
    put(&pickle, tail, sizeof(tail) - 1);
    struct phema_checkpoint *checkpoint = open_pickle(pickle.data, pickle.size);
    phema_strbuf_clear(&pickle);
    assert_non_null(find(checkpoint, "ema.stds"));
    assert_int_equal(phema_checkpoint_n_values(checkpoint), 4096);
    assert_non_null(find(checkpoint, "optim.0.4094"));
    assert_null(find(checkpoint, "optim.0.4095"));
    phema_checkpoint_forget_listing(checkpoint);
    assert_int_equal(phema_checkpoint_n_values(checkpoint), 0);
    phema_checkpoint_close(checkpoint);
}

/* 10^30 paths lead to one number. */
static void shared_containers_cost_little(void **state)
{
    (void)state;
    struct phema_strbuf pickle = {0};
    put(&pickle, PROTO "]q\0" INT("\1") "a0", 9);
    for (unsigned level = 1; level < 30; level++) {
        put_text(&pickle, "](");
        for (unsigned i = 0; i < 10; i++) {
            put_text(&pickle, "h");
            put_int(&pickle, level - 1, 1);
        }
        put_text(&pickle, "eq");
        put_int(&pickle, level, 1);
        put_text(&pickle, "0");
    }
    static const char tail[] =
        "}(" TEXT("\4", "bomb") "h\x1D" TEXT("\4", "near") "h\2" TEXT("\4", "step") INT("\7") "u.";
    put(&pickle, tail, sizeof(tail) - 1);
    struct phema_checkpoint *checkpoint = open_pickle(pickle.data, pickle.size);
    phema_strbuf_clear(&pickle);
    assert_non_null(find(checkpoint, "step"));
    assert_non_null(find(checkpoint, "near.9.9.0"));
    assert_int_equal(phema_checkpoint_n_values(checkpoint), 101);
    phema_checkpoint_close(checkpoint);
}

static void depth_and_names_are_bounded(void **state)
{
    (void)state;
    CHECK(PROTO "]]]]]]]]" INT("\1") "aaaaaaaa.", "0.0.0.0.0.0.0.0=1");
    CHECK(PROTO "]]]]]]]]]" INT("\1") "aaaaaaaaa.", "");
    for (unsigned size = 254; size <= 255; size++) {
        struct phema_strbuf pickle = {0};
        put(&pickle, PROTO "}X", 4);
        put_int(&pickle, size, 4);
        for (unsigned i = 0; i < size; i++)
            put_text(&pickle, "k");
        put(&pickle, "]" INT("\1") "as.", 6);
        struct phema_checkpoint *checkpoint = open_pickle(pickle.data, pickle.size);
        phema_strbuf_clear(&pickle);
        assert_int_equal(phema_checkpoint_n_values(checkpoint), size == 254 ? 1 : 0);
        phema_checkpoint_close(checkpoint);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_named_like_tensors),
    cmocka_unit_test(integers_of_numpy_are_numbers),
    cmocka_unit_test(files_of_torch),
    cmocka_unit_test(numbers_near_the_root_are_kept),
    cmocka_unit_test(shared_containers_cost_little),
    cmocka_unit_test(depth_and_names_are_bounded),
};
TEST_GROUP(tests)
