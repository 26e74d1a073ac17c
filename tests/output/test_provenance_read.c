// SPDX-License-Identifier: Apache-2.0
/* Every field of a provenance is read exactly, and missing fields are reported. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/output.h"
#include "support.h"

#define HEAD "{\"version\":1,\"program\":\"p 1\",\"command\":\"c d\",\"accumulate\":\"f64\","
#define ONE                                                                                        \
    "\"snapshots\":[{\"file\":\"a\",\"weight\":0.10000000000000001,\"bytes\":7,\"xxh3\":\"ab\"}]"

static enum phema_status parse(struct phema_provenance **out, const char *text,
                               struct phema_error *err)
{
    /* reading one byte too many would crash */
    const uint8_t *guarded = support_guarded(text, strlen(text));
    return phema_provenance_parse(out, (struct phema_span){guarded, strlen(text)}, err);
}

static void every_field_is_read(void **state)
{
    (void)state;
    struct phema_provenance *recorded = NULL;
    struct phema_error err = {0};
    const char *text =
        HEAD ONE ",\"target\":{\"time\":100,\"sigma_rel\":0.1,\"gamma\":null,"
                 "\"spec\":\"raw\"},\"checks\":{\"verdict\":\"wrong\","
                 "\"reason\":\"'a' is a copy\"},\"rules\":[{\"pattern\":\"x\",\"copy\":true},"
                 "{\"pattern\":\"y\",\"weights\":[-1e-300]}]}";
    assert_ok(parse(&recorded, text, &err), &err);
    assert_string_equal(recorded->program, "p 1");
    assert_string_equal(recorded->command, "c d");
    assert_true(recorded->time == 100 && recorded->sigma_rel == 0.1 && isnan(recorded->gamma));
    assert_string_equal(recorded->spec, "raw");
    assert_string_equal(recorded->verdict, "wrong");
    assert_string_equal(recorded->reason, "'a' is a copy");
    assert_int_equal(recorded->n_inputs, 1);
    assert_string_equal(recorded->inputs[0].file, "a");
    assert_string_equal(recorded->inputs[0].digest, "ab");
    assert_true(recorded->inputs[0].weight == 0.1 && recorded->inputs[0].bytes == 7);
    assert_int_equal(recorded->n_rules, 2);
    assert_true(recorded->rules[0].is_copy && !recorded->rules[0].weights);
    assert_true(!recorded->rules[1].is_copy && recorded->rules[1].weights[0] == -1e-300);
    phema_provenance_close(recorded);
}

/* File names need not be UTF-8. */
static void rows_are_read(void **state)
{
    (void)state;
    struct phema_provenance *recorded = NULL;
    struct phema_error err = {0};
    const char *text = "{\"version\":1,\"program\":\"p\",\"command\":\"c "
                       "\xEF\xBF\xBD\",\"command_bytes\":\"c%20%FF\","
                       "\"accumulate\":\"f64\",\"snapshots\":[{\"file\":\"\xEF\xBF\xBD\",\"file_"
                       "bytes\":\"%fe\",\"time\":7,"
                       "\"sigma_rel\":0.1,\"gamma\":6.9,\"update_every\":10,\"weight\":1},{"
                       "\"file\":\"b\",\"time\":8,"
                       "\"sigma_rel\":null,\"gamma\":null,\"profile\":\"table:\xEF\xBF\xBD\","
                       "\"profile_bytes\":\"table:%FF\","
                       "\"weight\":0}],\"rules\":[{\"pattern\":\"y\",\"sigma_rel\":0.2,\"gamma\":3,"
                       "\"weights\":[1,0]}]}";
    assert_ok(parse(&recorded, text, &err), &err);
    assert_string_equal(recorded->command, "c \xFF");
    assert_true(!recorded->verdict && !recorded->reason);
    const struct phema_provenance_input *inputs = recorded->inputs;
    assert_string_equal(inputs[0].file, "\xFE");
    assert_true(inputs[0].time == 7 && inputs[0].sigma_rel == 0.1 && inputs[0].gamma == 6.9);
    assert_true(inputs[0].update_every == 10 && !inputs[0].spec);
    assert_true(inputs[1].time == 8 && isnan(inputs[1].sigma_rel) && isnan(inputs[1].gamma));
    assert_int_equal(inputs[1].update_every, 1);
    assert_string_equal(inputs[1].spec, "table:\xFF");
    assert_true(recorded->rules[0].sigma_rel == 0.2 && recorded->rules[0].gamma == 3);
    phema_provenance_close(recorded);
}

static void missing_and_malformed_fields_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "JSON"},
        {"[]", "version 1"},
        {"{\"version\":1,\"program\":\"p\"," ONE "}", "program, command and accumulate"},
        {"{\"version\":1,\"program\":\"p\",\"command\":\"c\",\"accumulate\":\"f16\"," ONE "}",
         "auto, f64 or f32"},
        {HEAD "\"snapshots\":{}}", "a list of snapshots"},
        {HEAD "\"snapshots\":[3]}", "snapshot 1"},
        {HEAD "\"snapshots\":[{\"file\":\"a\",\"weight\":null}]}", "snapshot 1"},
        {HEAD "\"snapshots\":[{\"file\":\"a\",\"weight\":1,\"xxh3\":\"ab\"}]}", "snapshot 1"},
        {HEAD "\"snapshots\":[{\"file\":\"a\\u0000\",\"weight\":1}]}", "snapshot 1"},
        {HEAD "\"snapshots\":[{\"file\":\"a\",\"file_bytes\":\"%0\",\"weight\":1}]}", "snapshot 1"},
        {HEAD ONE ",\"rules\":3}", "a list of rules"},
        {HEAD ONE ",\"rules\":[{\"pattern\":\"x\",\"weights\":[1,2]}]}", "rule 1"},
        {HEAD ONE ",\"rules\":[{\"copy\":true}]}", "rule 1"},
        {"{\"posthoc_ema.provenance\":3}", "version 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct phema_provenance *recorded = NULL;
        struct phema_error err = {0};
        assert_fails(parse(&recorded, bad[i].text, &err), PHEMA_ERR_FILE, &err, bad[i].part);
        assert_null(recorded);
    }
}

static void an_older_provenance_has_no_digests(void **state)
{
    (void)state;
    struct phema_provenance *recorded = NULL;
    struct phema_error err = {0};
    const char *text = HEAD "\"snapshots\":[{\"file\":\"a\",\"weight\":1}]}";
    assert_ok(parse(&recorded, text, &err), &err);
    assert_null(recorded->inputs[0].digest);
    assert_true(isnan(recorded->time) && !recorded->spec && recorded->n_rules == 0);
    phema_provenance_close(recorded);
    phema_provenance_close(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_field_is_read),
    cmocka_unit_test(rows_are_read),
    cmocka_unit_test(missing_and_malformed_fields_are_refused),
    cmocka_unit_test(an_older_provenance_has_no_digests),
};
TEST_GROUP(tests)
