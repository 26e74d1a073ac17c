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
#define A_SHARE SPEC_NUMBER, 0, 1, "a number from 0 to 1"

static const struct spec_kind kinds[] = {
    {"power",
     BUILD_POWER,
     {{"sigma", SPEC_NUMBER, -DBL_MAX, DBL_MAX, "a number", NONE, false},
      {"gamma", SPEC_NUMBER, -0.5 + 0x1p-54, 1e9, "a number above -0.5 and up to 1e9", NONE, false},
      {"update-every", SPEC_COUNT, 1, 1e9, "a count from 1 to 1e9", NONE, false}},
     false,
     false},
    {"ema",
     BUILD_EMA,
     {{"half-life", A_TIME, NONE, false},
      {"decay", SPEC_NUMBER, DBL_MIN, 1 - 0x1p-53, "a number above 0 and below 1", NONE, false}},
     false,
     false},
    /* EDM and EDM2: ema_halflife_kimg and ema_rampup_ratio, whose default is EDM2's here */
    {"edm-ema",
     BUILD_RAMPED,
     {{"half-life", A_TIME, NONE, true},
      {"ramp", SPEC_NUMBER, 1e-6, 1e6, "a number from 1e-6 to 1e6", 0.09, false}},
     false,
     false},
    {"diffusers",
     BUILD_DIFFUSERS,
     {{"decay", A_SHARE, 0.9999, false},
      {"warmup", SPEC_YES_NO, 0, 1, "yes or no", 0, false},
      {"inv-gamma", SPEC_NUMBER, 1e-6, 1e9, "a number from 1e-6 to 1e9", 1, false},
      {"power", SPEC_NUMBER, 0, 1e3, "a number from 0 to 1000", 2.0 / 3, false},
      {"update-after", SPEC_COUNT, 0, 1e9, "a count up to 1e9", 0, false},
      {"min-decay", A_SHARE, 0, false}},
     false,
     false},
    {"titan",
     BUILD_TITAN,
     {{"fraction", SPEC_NUMBER, 1e-6, 1e6, "a number from 1e-6 to 1e6", 0.05, false},
      {"decay", SPEC_NUMBER, 0, 1 - 0x1p-53, "a number from 0 and below 1", NONE, false},
      {"start", SPEC_COUNT, 0, 1e9, "a count up to 1e9", 0, false},
      {"every", SPEC_COUNT, 1, 1e9, "a count from 1 to 1e9", 1, false},
      {"bias", SPEC_COUNT, 0, 1e9, "a count up to 1e9", 0, false},
      {"counting", SPEC_CHOICE, 0, 3, TITAN_COUNTINGS, TITAN_COUNT, false}},
     false,
     false},
    {"lightning",
     BUILD_LIGHTNING,
     {{"decay", A_SHARE, 0.999, false},
      {"every", SPEC_COUNT, 1, 1e9, "a count from 1 to 1e9", 1, false},
      {"start", SPEC_COUNT, 0, 1e9, "a count up to 1e9", 0, false}},
     false,
     false},
    {"cosmos",
     BUILD_COSMOS,
     {{"sigma-rel", SPEC_NUMBER, -DBL_MAX, DBL_MAX, "a number", 0.1, false},
      {"shift", SPEC_COUNT, 0, 1e15, "a count up to 1e15", 0, false}},
     false,
     false},
    {"window", BUILD_WINDOW, {{"length", A_TIME, NONE, true}}, true, false},
    /* gradients that a linear decay scales: the uniform average, and shown as that */
    {"linear", BUILD_WINDOW, {{"length", A_TIME, NONE, true}}, true, false},
    {"cosine", BUILD_COSINE, {{"length", A_TIME, NONE, true}}, true, false},
    {"minus-sqrt", BUILD_MINUS_SQRT, {{"length", A_TIME, NONE, true}}, true, false},
    {"raw", BUILD_RAW, {{NULL, SPEC_NUMBER, 0, 0, NULL, 0, false}}, true, false},
    {"table", BUILD_TABLE, {{NULL, SPEC_NUMBER, 0, 0, NULL, 0, false}}, true, true},
    /* TRL's BEMACallback: update_freq, update_after, ema_power, bias_power, lag, multiplier and
     * min_ema_multiplier; a base below 1 would make negative weights */
    {"bema",
     BUILD_BEMA,
     {{"every", SPEC_COUNT, 1, 1e9, "a count from 1 to 1e9", 400, false},
      {"after", SPEC_COUNT, 0, 1e9, "a count up to 1e9", 0, false},
      {"ema-power", A_SHARE, 0.5, false},
      {"bias-power", A_SHARE, 0.2, false},
      {"lag", SPEC_NUMBER, 1, 1e9, "a number from 1 to 1e9", 10, false},
      {"multiplier", SPEC_NUMBER, 0, 1e6, "a number up to 1e6", 1, false},
      {"min-ema", A_SHARE, 0, false}},
     false,
     false},
    {"sma", BUILD_UNIFORM, {{"n", A_COUNT, NONE, true}}, true, false},
    {"wma", BUILD_ASCENDING, {{"n", A_COUNT, NONE, true}}, true, false},
    {"ema-merge",
     BUILD_RECURSIVE,
     {{"alpha", SPEC_NUMBER, DBL_MIN, 1, "a number above 0 and up to 1", NONE, true},
      {"n", A_COUNT, NONE, false}},
     false,
     false},
    {"wsm-linear", BUILD_WSM_LINEAR, {{"n", A_COUNT, NONE, true}}, true, false},
    {"wsm-cosine", BUILD_WSM_COSINE, {{"n", A_COUNT, NONE, true}}, true, false},
    {"wsm-minus-sqrt", BUILD_WSM_MINUS_SQRT, {{"n", A_COUNT, NONE, true}}, true, false},
};

const struct spec_kind *spec_kind_find(const char *name, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (phema_bytes_are(name, size, kinds[i].name))
            return &kinds[i];
    return NULL;
}

size_t spec_n_keys(const struct spec_kind *kind)
{
    size_t n = 0;
    while (n < SPEC_MAX_KEYS && kind->keys[n].name)
        n++;
    return n;
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

double spec_value(const struct phema_spec_term *term, const char *key)
{
    for (size_t i = 0; i < spec_n_keys(term->kind); i++)
        if (strcmp(term->kind->keys[i].name, key) == 0)
            return term->values[i];
    return PHEMA_UNKNOWN;
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
                    {"sma|mean|uniform", "sma:4"},
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
    static const char *const slips[][2] = {
        {"ema:0.", "ema:decay=0."},  {"ema:.", "ema:decay=0."},    {"raw-", "raw - "},
        {"halflife=", "half-life="}, {"half_life=", "half-life="}, {"beta=", "decay="},
        {"momentum=", "decay="}};
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

PHEMA_FALLIBLE spec_fail_unknown(const struct spec_kind *kind, const char *name, size_t size,
                                 struct phema_error *err)
{
    struct phema_strbuf known = {0};
    size_t n = kind ? spec_n_keys(kind) : ARRAY_LEN(kinds);
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(&known, "%s%s", i ? ", " : "",
                            kind ? kind->keys[i].name : kinds[i].name);
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, name, size);
    enum phema_status status = phema_strbuf_check(&known, err);
    if (!status && kind)
        status = phema_fail(err, PHEMA_ERR_USAGE, "unknown key '%s' of %s; known are %s",
                            shown.text, kind->name, known.data);
    else if (!status)
        status = phema_fail(err, PHEMA_ERR_USAGE, "unknown profile '%s'; known are %s", shown.text,
                            known.data);
    phema_strbuf_clear(&known);
    return status;
}
