// SPDX-License-Identifier: Apache-2.0
/* The profile in a snapshot's metadata, compared with that of its name or manifest. The files are
 * headers written here by hand. */
#include "candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

struct read {
    struct phema_arena arena;
    struct phema_specs specs;
    struct candidate candidate;
    struct phema_error err;
};

static void begin(struct read *read)
{
    *read = (struct read){
        .candidate = {.named_time = 1000, .sigma_rel = PHEMA_UNKNOWN, .gamma = PHEMA_UNKNOWN}};
    read->specs.arena = &read->arena;
}

/* members of __metadata__ */
static struct phema_checkpoint *make(const char *members)
{
    struct phema_strbuf header = {0}, file = {0};
    phema_strbuf_printf(&header, "{\"__metadata__\":{%s},", members);
    phema_strbuf_puts(&header, "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}");
    uint8_t size[8];
    phema_store_u64(size, header.size);
    phema_strbuf_append(&file, (const char *)size, sizeof(size));
    phema_strbuf_append(&file, header.data, header.size);
    phema_strbuf_append(&file, "\0\0\0\0", 4);
    char *path = support_tmp_path("snapshot.safetensors");
    support_write(path, file.data, file.size);
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_error err = {0};
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    phema_strbuf_clear(&header);
    phema_strbuf_clear(&file);
    free(path);
    return checkpoint;
}

static enum phema_status read_metadata(struct read *read, const char *members)
{
    struct phema_checkpoint *checkpoint = make(members);
    bool is_output = false;
    const char *unit = NULL;
    enum phema_status status = snapshot_metadata_read(&read->candidate, &is_output, &unit,
                                                      &read->specs, checkpoint, &read->err);
    phema_checkpoint_close(checkpoint);
    return status;
}

static void shapes_are_read(void **state)
{
    (void)state;
    struct read read;
    begin(&read);
    assert_ok(read_metadata(&read, "\"posthoc_ema.profile\":\"ema:half-life=200\""), &read.err);
    assert_string_equal(read.candidate.spec->canonical, "ema:half-life=200");
    assert_false(read.candidate.is_raw_inside);
    /* the same text in the next file gives the same spec */
    const struct phema_spec *first = read.candidate.spec;
    read.candidate.spec = NULL;
    assert_ok(read_metadata(&read, "\"posthoc_ema.profile\":\"ema:half-life=200\""), &read.err);
    assert_ptr_equal(read.candidate.spec, first);
    phema_arena_clear(&read.arena);

    begin(&read);
    assert_ok(read_metadata(&read, "\"posthoc_ema.profile\":\"raw\""), &read.err);
    assert_true(read.candidate.is_raw_inside);
    phema_arena_clear(&read.arena);
}

static void power_functions_are_read_by_their_numbers(void **state)
{
    (void)state;
    struct read read;
    begin(&read);
    assert_ok(read_metadata(&read, "\"posthoc_ema.profile\":\"power:sigma=0.1\","
                                   "\"posthoc_ema.sigma_rel\":\"0.1\""),
              &read.err);
    assert_null(read.candidate.spec);
    assert_true(read.candidate.sigma_rel == 0.1);
    phema_arena_clear(&read.arena);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    struct read read;
    begin(&read);
    read.candidate.sigma_rel = 0.05;
    assert_fails(read_metadata(&read, "\"posthoc_ema.profile\":\"ema:half-life=200\""),
                 PHEMA_ERR_INPUTS, &read.err,
                 "its name or manifest says the width of a power function, its metadata profile "
                 "'ema:half-life=200'");
    phema_arena_clear(&read.arena);
    begin(&read);
    assert_ok(phema_specs_find(&read.candidate.spec, &read.specs, "ema:100", &read.err), &read.err);
    assert_fails(read_metadata(&read, "\"posthoc_ema.profile\":\"ema:half-life=200\""),
                 PHEMA_ERR_INPUTS, &read.err, "says ema:half-life=100, its metadata profile 'ema");
    assert_fails(read_metadata(&read, "\"posthoc_ema.sigma_rel\":\"0.1\""), PHEMA_ERR_INPUTS,
                 &read.err, "its label says ema:half-life=100, but its metadata have the width");
    phema_arena_clear(&read.arena);
}

/* A file named inside a checkpoint is never opened: the profile counts as unknown. */
static void tables_are_never_opened(void **state)
{
    (void)state;
    static const char *const tables[] = {"table:/nowhere", "raw - table:/nowhere", "table:"};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct read read;
        begin(&read);
        struct phema_strbuf members = {0};
        phema_strbuf_printf(&members, "\"posthoc_ema.profile\":\"%s\"", tables[i]);
        assert_ok(read_metadata(&read, members.data), &read.err);
        assert_null(read.candidate.spec);
        read.candidate.sigma_rel = 0.05;
        assert_fails(read_metadata(&read, members.data), PHEMA_ERR_INPUTS, &read.err,
                     "says the width of a power function");
        phema_strbuf_clear(&members);
        phema_arena_clear(&read.arena);
    }
}

static void hostile_profiles_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *profile, *message;
    } hostile[] = {{"raw - raw", "is no average of one training"},
                   {"sma:3", "is no average of one training"},
                   {"emu", "unknown profile 'emu'"},
                   {"", "unknown profile ''"},
                   {"ema:half-life=-1", "half-life: expected a time"}};
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        struct read read;
        begin(&read);
        struct phema_strbuf members = {0};
        phema_strbuf_printf(&members, "\"posthoc_ema.profile\":\"%s\"", hostile[i].profile);
        assert_fails(read_metadata(&read, members.data), PHEMA_ERR_INPUTS, &read.err,
                     hostile[i].message);
        assert_null(read.candidate.spec);
        phema_strbuf_clear(&members);
        phema_arena_clear(&read.arena);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shapes_are_read),
    cmocka_unit_test(power_functions_are_read_by_their_numbers),
    cmocka_unit_test(contradictions_are_refused),
    cmocka_unit_test(tables_are_never_opened),
    cmocka_unit_test(hostile_profiles_are_refused),
};
TEST_GROUP(tests)
