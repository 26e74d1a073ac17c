// SPDX-License-Identifier: Apache-2.0
/* rules.c - --rule RE=SIGMA and RE=copy. */
#include "targets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/regex.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* Each is a target at every time, and a search in every name. */
#define MAX_RULES ((size_t)256)

/* ---- Reading ---- */

/* Bytes of an expression in a message: the rest of the sentence must fit. */
#define MAX_SHOWN 200

static enum phema_status fail_rule(const char *text, enum phema_status status,
                                   struct phema_error *err)
{
    (void)phema_fail_in(err, status, "%s'%.*s'", phema_setting_equals(PHEMA_SET_RULE), MAX_SHOWN,
                        text);
    return phema_blame(err, status, PHEMA_SET_RULE);
}

/* The only parser of the text after the '='. */
static enum phema_status read_width(struct phema_plan_rule *rule, const char *text,
                                    struct phema_error *err)
{
    rule->sigma_rel = rule->gamma = PHEMA_UNKNOWN;
    rule->is_copy = strcmp(text, "copy") == 0;
    if (rule->is_copy)
        return PHEMA_OK;
    char *end = NULL;
    rule->sigma_rel = strtod(text, &end);
    struct phema_name_buffer shown;
    if (!*text || *end || isnan(rule->sigma_rel))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected a sigma_rel such as 0.05, or copy, behind the last '=', found "
                          "'%s'",
                          phema_name_show(&shown, text));
    return phema_gamma_from_sigma_rel(&rule->gamma, rule->sigma_rel, err);
}

/* "attn:0.05" is meant as "attn=0.05". */
static enum phema_status fail_form(const char *text, struct phema_error *err)
{
    char guess[MAX_SHOWN] = "";
    const char *colon = strrchr(text, ':');
    if (colon && colon > text && colon[1] && strlen(text) < sizeof(guess)) {
        memcpy(guess, text, strlen(text) + 1);
        guess[colon - text] = '=';
    }
    (void)phema_fail(err, PHEMA_ERR_USAGE, "expected RE=SIGMA or RE=copy, such as 'attn=0.05'");
    return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_RULE, guess);
}

static enum phema_status read_rule(struct phema_plan_rule *rule, struct phema_arena *memory,
                                   const char *text, struct phema_error *err)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return fail_form(text, err);
    rule->expression = phema_arena_copy(memory, text, (size_t)(equals - text));
    if (!rule->expression)
        return phema_fail_memory(err);
    enum phema_status status = read_width(rule, equals + 1, err);
    return status ? status : phema_regex_compile(&rule->pattern, rule->expression, err);
}

PHEMA_FALLIBLE rules_read(struct phema_plan *plan, const char *const *texts, size_t n,
                          struct phema_error *err)
{
    if (n > MAX_RULES)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_RULE,
                                  "%zu are given, expected at most %zu", n, MAX_RULES);
    plan->rules = phema_arena_array(&plan->memory, n, sizeof(*plan->rules));
    if (!plan->rules)
        return phema_fail_memory(err);
    for (size_t r = 0; r < n; r++) {
        plan->n_rules = r + 1;
        enum phema_status status = read_rule(&plan->rules[r], &plan->memory, texts[r], err);
        if (status)
            return fail_rule(texts[r], status, err);
    }
    return PHEMA_OK;
}

/* ---- Matching ---- */

/* Sets plan->rule_of[i] to the first rule that matches. matches[r]: rule r matches some tensor. */
static enum phema_status choose_rule(struct phema_plan *plan, size_t i, bool *matches,
                                     struct phema_error *err)
{
    const struct phema_tensor *tensor = &plan->series->tensors[i].tensor;
    for (size_t r = 0; r < plan->n_rules; r++) {
        if (plan->rule_of[i] && matches[r])
            continue; /* both answers are known */
        bool is_match = false;
        enum phema_status status = phema_regex_match(plan->rules[r].pattern, tensor->name,
                                                     tensor->name_size, &is_match, err);
        if (status)
            return fail_rule(plan->rules[r].expression, status, err);
        /* a copied buffer may be told to be copied */
        is_match = is_match &&
                   (plan->series->tensors[i].rule == PHEMA_RULE_AVERAGE || plan->rules[r].is_copy);
        matches[r] = matches[r] || is_match;
        if (!is_match || plan->rule_of[i])
            continue;
        plan->rule_of[i] = r + 1;
        plan->rules[r].n_tensors++;
    }
    return PHEMA_OK;
}

/* matches: the rule matches averaged tensors, which all follow an earlier rule. */
static enum phema_status fail_unfollowed(const struct phema_series *series, bool matches,
                                         struct phema_error *err)
{
    if (matches)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "every averaged tensor that it matches follows a rule before it; the "
                          "first one that matches is followed");
    size_t i = 0;
    while (i < series->n_tensors && series->tensors[i].rule != PHEMA_RULE_AVERAGE)
        i++;
    if (i == series->n_tensors)
        return phema_fail(err, PHEMA_ERR_INPUTS, "no tensor is averaged");
    const struct phema_tensor *tensor = &series->tensors[i].tensor;
    struct phema_name_buffer shown;
    (void)phema_fail(err, PHEMA_ERR_INPUTS,
                     "matches no tensor that is averaged; names are like '%s' (inspect lists "
                     "them)",
                     phema_name_escape(&shown, tensor->name, tensor->name_size));
    return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_RULE, "");
}

static enum phema_status choose_rules(struct phema_plan *plan, bool *matches,
                                      struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    for (size_t i = 0; i < series->n_tensors && plan->n_rules; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_buffer = entry->reason && strcmp(entry->reason, "buffer") == 0;
        if (entry->rule != PHEMA_RULE_AVERAGE && !is_buffer)
            continue;
        enum phema_status status = choose_rule(plan, i, matches, err);
        if (status)
            return status;
    }
    for (size_t r = 0; r < plan->n_rules && series->n_tensors; r++)
        if (!plan->rules[r].n_tensors)
            return fail_rule(plan->rules[r].expression, fail_unfollowed(series, matches[r], err),
                             err);
    return PHEMA_OK;
}

/* Tied tensors must follow the same rule: they are read once and stay tied. */
static enum phema_status check_ties(const struct phema_plan *plan, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    for (size_t i = 0; i < series->n_tensors; i++) {
        size_t first = series->tensors[i].same_as;
        if (plan->rule_of[i] == plan->rule_of[first])
            continue;
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        const struct phema_tensor *other = &series->tensors[first].tensor;
        struct phema_name_buffer shown, shown_other;
        (void)phema_name_escape(&shown, tensor->name, tensor->name_size);
        (void)phema_name_escape(&shown_other, other->name, other->name_size);
        return phema_fail_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_RULE,
                                  "tensors '%s' and '%s' are tied, but do not follow the same "
                                  "rule; write expressions that match both or neither",
                                  shown_other.text, shown.text);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE rules_match(struct phema_plan *plan, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    plan->rule_of = phema_arena_array(&plan->memory, series->n_tensors, sizeof(*plan->rule_of));
    bool *matches = phema_arena_array(&plan->memory, plan->n_rules, sizeof(*matches));
    if (!plan->rule_of || !matches)
        return phema_fail_memory(err);
    enum phema_status status = choose_rules(plan, matches, err);
    if (!status)
        status = check_ties(plan, err);
    return status ? phema_fail_in(err, status, "%s", series->root) : PHEMA_OK;
}

void rules_mark_copies(struct phema_plan *plan)
{
    for (size_t i = 0; i < plan->series->n_tensors; i++) {
        if (!plan->rule_of[i] || !plan->rules[plan->rule_of[i] - 1].is_copy)
            continue;
        plan->series->tensors[i].rule = PHEMA_RULE_COPY;
        plan->series->tensors[i].reason = "rule";
    }
}

static bool is_averaged(const struct phema_plan *plan, size_t at)
{
    if (at == SIZE_MAX || plan->series->tensors[at].rule != PHEMA_RULE_AVERAGE)
        return false;
    size_t rule = plan->rule_of ? plan->rule_of[at] : 0;
    return !rule || !plan->rules[rule - 1].is_copy;
}

/* The scale of an fp8 matrix is missing where others have one. Plain casts have no scales at
 * all. */
static enum phema_status check_scales(const struct phema_plan *plan, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    const struct phema_tensor *scaled = NULL, *bare = NULL;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        bool is_fp8 = tensor->dtype == PHEMA_F8_E4M3 || tensor->dtype == PHEMA_F8_E5M2;
        if (!scaled && tensor->scaling)
            scaled = tensor;
        if (!bare && is_fp8 && tensor->rank >= 2 && is_averaged(plan, i))
            bare = tensor;
    }
    struct phema_name_buffer without, with;
    if (!scaled || !bare)
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: tensor '%s': is %s without a scale, which '%s' has; add its scale to the snapshots, "
        "copy it (synth %s'RE=copy'), or leave it out (%s'RE')",
        series->root, phema_name_escape(&without, bare->name, bare->name_size),
        phema_dtype_name(bare->dtype), phema_name_escape(&with, scaled->name, scaled->name_size),
        phema_setting_equals(PHEMA_SET_RULE), phema_setting_equals(PHEMA_SET_EXCLUDE));
}

PHEMA_FALLIBLE rules_check_quantised(const struct phema_plan *plan, struct phema_error *err)
{
    for (const struct phema_quantised *item = plan->series->quantised; item; item = item->next)
        if (is_averaged(plan, item->codes_at) || is_averaged(plan, item->scale_at))
            return phema_fail(
                err, PHEMA_ERR_INPUTS,
                "%s: tensor '%s': is quantised (%s codes, scale in '%s'): %s; dequantise the "
                "snapshots, copy both (synth %s'RE=copy'), or leave both out (%s'RE')",
                plan->series->root, item->codes, phema_dtype_name(item->dtype), item->scale,
                item->fault ? item->fault : "codes and scale averaged apart give wrong values",
                phema_setting_equals(PHEMA_SET_RULE), phema_setting_equals(PHEMA_SET_EXCLUDE));
    return check_scales(plan, err);
}

void rules_clear(struct phema_plan *plan)
{
    for (size_t r = 0; r < plan->n_rules; r++)
        phema_regex_free(plan->rules[r].pattern);
}
