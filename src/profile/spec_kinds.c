// SPDX-License-Identifier: Apache-2.0
/* spec_kinds.c - the table of SPEC kinds and their keys. */
#include "spec.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "phema/strbuf.h"

#define NONE PHEMA_UNKNOWN

/* Times are below 2^53, where doubles hold whole numbers; shorter times are refused. */
#define A_TIME SPEC_TIME, 1e-6, 0x1p53, "a time from 1e-6 to 2^53"
/* The most unknowns of a Gram matrix. */
#define A_COUNT SPEC_COUNT, 1, 8192, "a count from 1 to 8192"

#define KIND(its_name, its_build, ...) .name = its_name, .build = its_build, .keys = {__VA_ARGS__}
#define LENGTH                         "length", A_TIME, NONE, true
#define N_SNAPSHOTS                    "n", A_COUNT, NONE, true

/* All kinds but the classes of libraries. */
static const struct spec_kind kinds[] = {
    {KIND("power", BUILD_POWER, {"sigma", SPEC_NUMBER, -DBL_MAX, DBL_MAX, "a number", NONE, false},
          {"gamma", SPEC_NUMBER, -0.5 + 0x1p-54, 1e9, "a number above -0.5 and up to 1e9", NONE,
           false},
          {"update-every", A_PERIOD, NONE, false}),
     .has_alternatives = true},
    {KIND("ema", BUILD_EMA, {"half-life", A_TIME, NONE, false},
          {"decay", SPEC_NUMBER, DBL_MIN, 1, "a number above 0 and below 1", NONE, false},
          {"warmup", SPEC_WARMUP, 0, DBL_MAX, SPEC_WARMUPS, FORM_NONE, false},
          {"", SPEC_NUMBER, 0, 0, NULL, NONE, false}, /* its numbers */
          {"", SPEC_NUMBER, 0, 0, NULL, NONE, false},
          {"first", SPEC_CHOICE, 0, 1, "blend|copy", 0, false}, {"every", A_PERIOD, 1, false},
          {"phase", A_START, 0, false}, {"start", A_START, 0, false},
          {"before", SPEC_CHOICE, 0, 2, SPEC_BEFORE, BEFORE_HOLDS, false},
          {"count", SPEC_CHOICE, 0, 1, "steps|updates", 0, false},
          {"offset", SPEC_NUMBER, -1e9, 1e9, "a number from -1e9 to 1e9", 0, false},
          {"min", A_SHARE, 0, false}, {"debias", SPEC_YES_NO, 0, 1, "yes or no", 0, false},
          {"arithmetic", SPEC_CHOICE, 0, 1, "exact|mul-f32", 0, false}),
     .set_rule = spec_set_ema, .has_alternatives = true},
    /* EDM and EDM2: ema_halflife_kimg and ema_rampup_ratio, whose default is EDM2's here */
    {KIND("edm-ema", BUILD_RAMPED, {"half-life", A_TIME, NONE, true},
          {"ramp", A_RAMP, 0.09, false})},
    /* the same with the default of StyleGAN2 and 3 */
    {KIND("stylegan", BUILD_RAMPED, {"half-life", A_TIME, NONE, true},
          {"ramp", A_RAMP, 0.05, false})},
    {KIND("cosmos", BUILD_COSMOS,
          {"sigma-rel", SPEC_NUMBER, -DBL_MAX, DBL_MAX, "a number", 0.1, false},
          {"shift", SPEC_COUNT, 0, 1e15, "a count up to 1e15", 0, false})},
    {KIND("window", BUILD_WINDOW, {LENGTH}), .is_bare = true},
    /* gradients that a linear decay scales: the uniform average, and shown as that */
    {KIND("linear", BUILD_WINDOW, {LENGTH}), .is_bare = true},
    {KIND("cosine", BUILD_COSINE, {LENGTH}), .is_bare = true},
    {KIND("minus-sqrt", BUILD_MINUS_SQRT, {LENGTH}), .is_bare = true},
    {.name = "raw", .build = BUILD_RAW, .is_bare = true},
    {.name = "table", .build = BUILD_TABLE, .is_bare = true, .takes_path = true},
    /* TRL's BEMACallback: update_freq, update_after, ema_power, bias_power, lag, multiplier and
     * min_ema_multiplier; a base below 1 would make negative weights */
    {KIND("bema", BUILD_BEMA, {"every", A_PERIOD, 400, false}, {"after", A_START, 0, false},
          {"ema-power", A_SHARE, 0.5, false}, {"bias-power", A_SHARE, 0.2, false},
          {"lag", SPEC_NUMBER, 1, 1e9, "a number from 1 to 1e9", 10, false},
          {"multiplier", SPEC_NUMBER, 0, 1e6, "a number up to 1e6", 1, false},
          {"min-ema", A_SHARE, 0, false})},
    {KIND("sma", BUILD_UNIFORM, {N_SNAPSHOTS}), .is_bare = true},
    {KIND("wma", BUILD_ASCENDING, {N_SNAPSHOTS}), .is_bare = true},
    {KIND("ema-merge", BUILD_RECURSIVE,
          {"alpha", SPEC_NUMBER, DBL_MIN, 1, "a number above 0 and up to 1", NONE, true},
          {"n", A_COUNT, NONE, false})},
    {KIND("wsm-linear", BUILD_WSM_LINEAR, {N_SNAPSHOTS}), .is_bare = true},
    {KIND("wsm-cosine", BUILD_WSM_COSINE, {N_SNAPSHOTS}), .is_bare = true},
    {KIND("wsm-minus-sqrt", BUILD_WSM_MINUS_SQRT, {N_SNAPSHOTS}), .is_bare = true},
    {KIND("extrapolate", BUILD_EXTRAPOLATE, {"to", A_TIME, NONE, true},
          {"window", A_TIME, NONE, false})},
    {KIND("line", BUILD_LINE,
          {"lambda", SPEC_NUMBER, -1e6, 1e6, "a number from -1e6 to 1e6", NONE, true}),
     .is_bare = true},
};

const struct spec_kind *spec_kind_find(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (phema_bytes_are(name, size, kinds[i].name))
            return &kinds[i];
    for (size_t i = 0; i < spec_n_classes; i++)
        if (phema_bytes_are(name, size, spec_classes[i].name))
            return &spec_classes[i];
    return NULL;
}

double spec_choice_find(const struct spec_key *key, const char *word)
{
    struct phema_span words = {(const uint8_t *)key->expected, strlen(key->expected)};
    for (int i = 0; words.size; i++) {
        struct phema_span each = phema_span_split(&words, '|');
        if (phema_bytes_are(each.data, each.size, word))
            return i;
    }
    return PHEMA_UNKNOWN;
}

struct phema_span spec_choice_word(const struct spec_key *key, double index)
{
    struct phema_span words = {(const uint8_t *)key->expected, strlen(key->expected)};
    struct phema_span word = phema_span_split(&words, '|');
    for (int i = 0; i < (int)index; i++)
        word = phema_span_split(&words, '|');
    return word;
}

/* A text of the kind that was probably meant. */
static const char *find_example(const char *text)
{
    static const struct {
        const char *words; /* parts of texts, between bars */
        const char *example;
    } examples[] = {{"wsm-linear", "wsm-linear:4"},
                    {"wsm-minus", "wsm-minus-sqrt:4"},
                    {"wsm|merge", "wsm-cosine:4"},
                    {"sma|mean|uniform|average|avg|swa|soup", "sma:4"},
                    {"wma", "wma:4"},
                    {"decay|diffusers|beta", "ema:decay=0.9999"},
                    {"sigma|power|karras", "power:sigma=0.1"},
                    {"linear", "linear:1000"},
                    {"cos", "cosine:1000"},
                    {"sqrt", "minus-sqrt:1000"},
                    {"wind|box", "window:1000"},
                    {"raw|newest|last", "raw"}};
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        struct phema_span words = {(const uint8_t *)examples[i].words, strlen(examples[i].words)};
        while (words.size) {
            struct phema_span word = phema_span_split(&words, '|');
            if (memmem(text, strlen(text), word.data, word.size))
                return examples[i].example;
        }
    }
    return "ema:half-life=2000";
}

/* The same text with a part in other words, where that is a usual slip. */
static bool correct_slip(char *out, size_t size, const char *text)
{
    static const char *const slips[][2] = {{"ema:0.", "ema:decay=0."},
                                           {"ema:.", "ema:decay=0."},
                                           {"raw-", "raw - "},
                                           {"halflife=", "half-life="},
                                           {"half_life=", "half-life="},
                                           {"ema:beta=", "ema:decay="},
                                           {"ema:momentum=", "ema:decay="},
                                           {"mean:", "sma:"},
                                           {"avg:", "sma:"},
                                           {"average:", "sma:"},
                                           {"uniform:", "sma:"}};
    for (size_t i = 0; i < ARRAY_LEN(slips); i++) {
        const char *at = strstr(text, slips[i][0]);
        if (at)
            return snprintf(out, size, "%.*s%s%s", (int)(at - text), text, slips[i][1],
                            at + strlen(slips[i][0])) < (int)size;
    }
    return false;
}

enum phema_status phema_spec_fail(struct phema_error *err, enum phema_status status,
                                  enum phema_setting setting, const char *text)
{
    char corrected[128];
    (void)phema_fail_in_setting(err, status, setting);
    if (err->n_changes || status != PHEMA_ERR_USAGE)
        return status;
    bool is_slip = correct_slip(corrected, sizeof(corrected), text);
    return phema_suggest(err, status, setting, is_slip ? corrected : find_example(text));
}

static void append_name(struct phema_strbuf *names, const char *name)
{
    phema_strbuf_printf(names, "%s%s", names->size ? ", " : "", name);
}

PHEMA_FALLIBLE spec_fail_unknown(const struct spec_kind *kind, const char *name, size_t size,
                                 struct phema_error *err)
{
    struct phema_strbuf known = {0};
    for (size_t i = 0; kind && i < spec_n_keys(kind); i++)
        if (kind->keys[i].name[0])
            append_name(&known, kind->keys[i].name);
    for (size_t i = 0; !kind && i < ARRAY_LEN(kinds); i++)
        append_name(&known, kinds[i].name);
    for (size_t i = 0; !kind && i < spec_n_classes; i++)
        append_name(&known, spec_classes[i].name);
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, name, size);
    enum phema_status status = phema_strbuf_check(&known, err);
    if (!status && kind)
        status =
            phema_fail(err, PHEMA_ERR_USAGE, "unknown key '%s' of %s%s%s%s; known are %s",
                       shown.text, kind->name, kind->of_class ? " (" : "",
                       kind->of_class ? kind->of_class : "", kind->of_class ? ")" : "", known.data);
    else if (!status)
        status = phema_fail(err, PHEMA_ERR_USAGE, "unknown profile '%s'; known are %s", shown.text,
                            known.data);
    phema_strbuf_clear(&known);
    return status;
}
