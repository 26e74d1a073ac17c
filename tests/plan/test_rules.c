// SPDX-License-Identifier: Apache-2.0
/* Widths per tensor: the syntax of rules, and the rule of each tensor. The series have no files. */
#include "targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MAX_NAMES 8

/* A plan with these rules for averaged F32 tensors of these names. */
struct draft {
    struct phema_plan plan;
    struct phema_series series;
    struct phema_series_tensor tensors[MAX_NAMES];
};

static void draft_init(struct draft *draft, const char *const *names, size_t n)
{
    *draft = (struct draft){.series = {.tensors = draft->tensors, .n_tensors = n}};
    static char root[] = "run";
    draft->series.root = root;
    draft->plan.series = &draft->series;
    for (size_t i = 0; i < n; i++)
        draft->tensors[i] = (struct phema_series_tensor){
            .tensor = {.name = names[i], .name_size = strlen(names[i]), .dtype = PHEMA_F32},
            .same_as = i};
}

static void draft_clear(struct draft *draft)
{
    rules_clear(&draft->plan);
    phema_arena_clear(&draft->plan.memory);
}

static void read_rules(struct draft *draft, const char *const *texts, size_t n)
{
    struct phema_error err = {0};
    assert_ok(rules_read(&draft->plan, texts, n, &err), &err);
    assert_int_equal(draft->plan.n_rules, n);
}

static void assert_follows(const struct draft *draft, const size_t *rule_of)
{
    for (size_t i = 0; i < draft->series.n_tensors; i++)
        assert_int_equal(draft->plan.rule_of[i], rule_of[i]);
}

static void the_last_equals_sign_separates(void **state)
{
    (void)state;
    static const char *const texts[] = {"attn=0.05", "a=b=0.10", "x(?=y)=copy", "=z=copy",
                                        ".=2e-1"};
    static const char *const expressions[] = {"attn", "a=b", "x(?=y)", "=z", "."};
    static const double sigma_rels[] = {0.05, 0.1, PHEMA_UNKNOWN, PHEMA_UNKNOWN, 0.2};
    struct draft draft;
    draft_init(&draft, NULL, 0);
    read_rules(&draft, texts, ARRAY_LEN(texts));
    for (size_t r = 0; r < ARRAY_LEN(texts); r++) {
        const struct phema_plan_rule *rule = &draft.plan.rules[r];
        assert_string_equal(rule->expression, expressions[r]);
        assert_int_equal(rule->is_copy, isnan(sigma_rels[r]));
        if (rule->is_copy)
            continue;
        assert_true(rule->sigma_rel == sigma_rels[r]);
        assert_near(phema_sigma_rel_from_gamma(rule->gamma), sigma_rels[r], 1e-12);
    }
    draft_clear(&draft);
}

static void invalid_rules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum phema_status status;
        const char *part;
    } cases[] = {
        {"", PHEMA_ERR_USAGE, "expected RE=SIGMA or RE=copy"},
        {"attn", PHEMA_ERR_USAGE, "expected RE=SIGMA or RE=copy"},
        {"=0.1", PHEMA_ERR_USAGE, "expected RE=SIGMA or RE=copy"},
        {"attn=", PHEMA_ERR_USAGE, "found ''"},
        {"attn=Copy", PHEMA_ERR_USAGE, "found 'Copy'"},
        {"attn=0.1,0.2", PHEMA_ERR_USAGE, "found '0.1,0.2'"},
        {"attn=nan", PHEMA_ERR_USAGE, "found 'nan'"},
        {"attn=0.289", PHEMA_ERR_TARGET, "--rule 'attn=0.289': "},
        {"attn=0", PHEMA_ERR_TARGET, "--rule 'attn=0': "},
        {"attn=inf", PHEMA_ERR_TARGET, "--rule 'attn=inf': "},
        {"at(tn=0.1", PHEMA_ERR_USAGE, "regular expression 'at(tn'"},
    };
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct phema_error err = {0};
        struct draft draft;
        draft_init(&draft, NULL, 0);
        const char *const texts[] = {"fine=0.1", cases[c].text};
        assert_fails(rules_read(&draft.plan, texts, 2, &err), cases[c].status, &err, cases[c].part);
        draft_clear(&draft);
    }
}

static void at_most_256_rules_are_accepted(void **state)
{
    (void)state;
    static const char *texts[257];
    for (size_t r = 0; r < ARRAY_LEN(texts); r++)
        texts[r] = "a=0.1";
    struct phema_error err = {0};
    struct draft draft;
    draft_init(&draft, NULL, 0);
    assert_fails(rules_read(&draft.plan, texts, 257, &err), PHEMA_ERR_USAGE, &err, "at most 256");
    draft_clear(&draft);
    draft_init(&draft, NULL, 0);
    read_rules(&draft, texts, 256);
    draft_clear(&draft);
}

static const char *const names[] = {"enc.attn.weight", "enc.attn.bias", "enc.mlp.weight",
                                    "dec.attn.weight", "step",          "out.gain"};

static void the_first_matching_rule_is_followed(void **state)
{
    (void)state;
    static const char *const texts[] = {"^dec=copy", "attn=0.05", "weight$=0.2"};
    static const size_t wanted[] = {2, 2, 3, 1, 0, 0};
    struct phema_error err = {0};
    struct draft draft;
    draft_init(&draft, names, ARRAY_LEN(names));
    draft.tensors[4].rule = PHEMA_RULE_COPY;
    draft.tensors[4].reason = "bookkeeping";
    read_rules(&draft, texts, ARRAY_LEN(texts));
    assert_ok(rules_match(&draft.plan, &err), &err);
    assert_follows(&draft, wanted);
    assert_int_equal(draft.plan.rules[0].n_tensors, 1);
    assert_int_equal(draft.plan.rules[1].n_tensors, 2);
    assert_int_equal(draft.plan.rules[2].n_tensors, 1);

    /* solving for the weights comes first */
    assert_int_equal(draft.tensors[3].rule, PHEMA_RULE_AVERAGE);
    rules_mark_copies(&draft.plan);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(draft.tensors[i].rule,
                         i == 3 || i == 4 ? PHEMA_RULE_COPY : PHEMA_RULE_AVERAGE);
    assert_string_equal(draft.tensors[3].reason, "rule");
    assert_string_equal(draft.tensors[4].reason, "bookkeeping");
    draft_clear(&draft);
}

static void refuse(const char *const *texts, size_t n, const char *part)
{
    struct phema_error err = {0};
    struct draft draft;
    draft_init(&draft, names, ARRAY_LEN(names));
    draft.tensors[4].rule = PHEMA_RULE_COPY;
    draft.tensors[3].same_as = 2; /* one storage */
    read_rules(&draft, texts, n);
    assert_fails(rules_match(&draft.plan, &err), PHEMA_ERR_INPUTS, &err, part);
    draft_clear(&draft);
}
#define REFUSE(part, ...)                                                                          \
    refuse((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), part)

static void a_rule_without_tensors_is_an_error(void **state)
{
    (void)state;
    REFUSE("--rule 'atn': matches no tensor that is averaged; names are like 'enc.attn.weight'",
           "weight=0.1", "atn=0.05");
    REFUSE("--rule 'step': matches no tensor", "step=copy"); /* already a copy */
    REFUSE("--rule 'bias': every averaged tensor that it matches follows a rule before it",
           "n=0.05", "bias=0.1");
}

static void tied_tensors_follow_one_rule(void **state)
{
    (void)state;
    REFUSE("tensors 'enc.mlp.weight' and 'dec.attn.weight' are tied", "dec=0.05");
    REFUSE("are tied, but do not follow the same rule", "mlp=0.05", "dec=0.05");
    static const char *const texts[] = {"mlp|dec=copy"};
    struct phema_error err = {0};
    struct draft draft;
    draft_init(&draft, names, ARRAY_LEN(names));
    draft.tensors[3].same_as = 2;
    read_rules(&draft, texts, 1);
    assert_ok(rules_match(&draft.plan, &err), &err);
    draft_clear(&draft);
}

/* Weights that depend only on names and times. */
static void series_without_tensors_match_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"attn=0.05"};
    struct phema_error err = {0};
    struct draft draft;
    draft_init(&draft, NULL, 0);
    read_rules(&draft, texts, 1);
    assert_ok(rules_match(&draft.plan, &err), &err);
    assert_int_equal(draft.plan.rules[0].n_tensors, 0);
    draft_clear(&draft);
}

static const char manifest[] = "{\"snapshots\": ["
                               "{\"time\": 100, \"sigma_rel\": 0.05},"
                               "{\"time\": 100, \"sigma_rel\": 0.1},"
                               "{\"time\": 200, \"sigma_rel\": 0.05},"
                               "{\"time\": 200, \"sigma_rel\": 0.1}]}";

static struct phema_plan *make_plan(const double *sigma_rels, size_t n, const char *const *rules,
                                    size_t n_rules)
{
    static const double ats[] = {100, 200};
    char *path = support_tmp_path("manifest.json");
    support_write(path, manifest, sizeof(manifest) - 1);
    struct phema_plan_options options = {
        .series = {.snapshots = path, .from = -HUGE_VAL, .to = HUGE_VAL, .needs_no_tensors = true},
        .sigma_rels = sigma_rels,
        .n_sigma_rels = n,
        .ats = ats,
        .n_ats = 2,
        .rules = rules,
        .n_rules = n_rules};
    struct phema_error err = {0};
    struct phema_plan *plan = NULL;
    assert_ok(phema_plan_make(&plan, &options, &err), &err);
    free(path);
    return plan;
}

static void rules_have_the_weights_of_a_separate_target(void **state)
{
    (void)state;
    static const double widths[] = {0.07, 0.2}, own[] = {0.12};
    static const char *const texts[] = {"a=copy", "b=0.12"};
    struct phema_plan *plan = make_plan(widths, 2, texts, 2);
    struct phema_plan *plain = make_plan(widths, 2, NULL, 0);
    struct phema_plan *alone = make_plan(own, 1, NULL, 0);
    assert_int_equal(plan->m, 4);
    for (size_t j = 0; j < plan->m; j++) {
        const struct phema_solution *ruled = &plan->targets[j].ruled[1];
        size_t size = plan->series->n * sizeof(double);
        assert_memory_equal(plan->targets[j].solution.weights, plain->targets[j].solution.weights,
                            size);
        assert_memory_equal(ruled->weights, alone->targets[j / 2].solution.weights, size);
        assert_true(ruled->predicted.total == alone->targets[j / 2].solution.predicted.total);
        assert_null(plan->targets[j].ruled[0].weights);
    }
    assert_ptr_equal(plan->targets[0].ruled, plan->targets[1].ruled); /* one time */
    assert_ptr_not_equal(plan->targets[1].ruled, plan->targets[2].ruled);
    phema_plan_free(plan);
    phema_plan_free(plain);
    phema_plan_free(alone);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_last_equals_sign_separates),
    cmocka_unit_test(invalid_rules_are_refused),
    cmocka_unit_test(at_most_256_rules_are_accepted),
    cmocka_unit_test(the_first_matching_rule_is_followed),
    cmocka_unit_test(a_rule_without_tensors_is_an_error),
    cmocka_unit_test(tied_tensors_follow_one_rule),
    cmocka_unit_test(series_without_tensors_match_nothing),
    cmocka_unit_test(rules_have_the_weights_of_a_separate_target),
};
TEST_GROUP(tests)
