// SPDX-License-Identifier: Apache-2.0
/* cmd_convert.c - translates between the ways to specify the length of an average. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "phema/json.h"
#include "phema/profile.h"
#include "series_options.h"

struct convert_values {
    struct cli_common common;
    struct cli_reals sigma_rel, gamma, half_life, half_life_share, beta, decay, ema_half_life;
    double at;
};

/* The length of one average in every unit; values that need a time are NaN without --at. */
struct length {
    double sigma_rel, gamma, half_life_share;
    double at, width, half_life, beta, decay, ema_half_life;
};

/* The exponential EMA that matches has the same standard deviation in time: 1/k = sigma_rel t, and
 * decay e^-k for each step (arXiv:2312.02696, section 3.1, where sigma_rel is that width). */
static double decay_from_width(double width)
{
    return exp(-1 / width);
}

/* (1 - 1/step)^(gamma+1) (eq. 127), and back. */
static double beta_from_gamma(double gamma, double step)
{
    return step > 1 ? exp((gamma + 1) * log1p(-1 / step)) : 0;
}

static double gamma_from_beta(double beta, double step)
{
    return log(beta) / log1p(-1 / step) - 1;
}

static enum phema_status from_gamma(struct length *out, double gamma, double at,
                                    struct phema_error *err)
{
    double sigma_rel = phema_sigma_rel_from_gamma(gamma);
    if (!(gamma > -0.5) || !isfinite(gamma))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "gamma %g is not above -0.5, where power functions cease to be "
                          "square-integrable",
                          gamma);
    *out = (struct length){.sigma_rel = sigma_rel,
                           .gamma = gamma,
                           .half_life_share = phema_half_life_from_gamma(gamma, 1),
                           .at = at,
                           .width = sigma_rel * at,
                           .half_life = phema_half_life_from_gamma(gamma, at),
                           .beta = isnan(at) ? at : beta_from_gamma(gamma, at),
                           .decay = decay_from_width(sigma_rel * at),
                           .ema_half_life = M_LN2 * sigma_rel * at};
    return PHEMA_OK;
}

static enum phema_status need_at(const struct convert_values *given, const char *option,
                                 struct phema_error *err)
{
    if (given->at > 0)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE, "--%s: is %s; --at says at which step of the training",
                      option,
                      strcmp(option, "beta") == 0 ? "that of one step" : "a number of steps");
}

static enum phema_status add_row(struct phema_strbuf *out, struct phema_json_out *json,
                                 const struct length *length, struct phema_error *err)
{
    if (json->text) {
        phema_json_out_open(json, NULL, '{');
        phema_json_out_number(json, "sigma_rel", length->sigma_rel);
        phema_json_out_number(json, "gamma", length->gamma);
        phema_json_out_number(json, "half_life_rel", length->half_life_share);
        if (!isnan(length->at)) {
            phema_json_out_number(json, "time", length->at);
            phema_json_out_number(json, "width", length->width);
            phema_json_out_number(json, "half_life", length->half_life);
            phema_json_out_number(json, "beta", length->beta);
            phema_json_out_number(json, "decay", length->decay);
            phema_json_out_number(json, "ema_half_life", length->ema_half_life);
        }
        phema_json_out_close(json, '}');
    } else {
        phema_strbuf_printf(out, "%-12.8g %-12.8g %-*.8g", length->sigma_rel, length->gamma,
                            isnan(length->at) ? 0 : 13, length->half_life_share);
        if (!isnan(length->at))
            phema_strbuf_printf(out, " %-12.8g %-12.8g %-12.10g %-12.10g %.8g", length->width,
                                length->half_life, length->beta, length->decay,
                                length->ema_half_life);
        phema_strbuf_puts(out, "\n");
    }
    return phema_strbuf_check(out, err);
}

enum spelling { SIGMA_REL, GAMMA, HALF_LIFE, HALF_LIFE_SHARE, BETA, DECAY, EMA_HALF_LIFE };

static const struct {
    const char *option;
    bool needs_at;
} spellings[] = {{"sigma-rel", false},     {"gamma", false}, {"half-life", true},
                 {"half-life-rel", false}, {"beta", true},   {"decay", true},
                 {"ema-half-life", true}};

static enum phema_status find_gamma(double *gamma, const struct convert_values *given,
                                    enum spelling spelling, double value, struct phema_error *err)
{
    bool is_share = spelling == BETA || spelling == DECAY;
    if (is_share && !(value > 0 && value < 1))
        return phema_fail(err, PHEMA_ERR_USAGE, "--%s: %g is not between 0 and 1",
                          spellings[spelling].option, value);
    switch (spelling) {
    case SIGMA_REL:
        return phema_gamma_from_sigma_rel(gamma, value, err);
    case HALF_LIFE:
        return phema_gamma_from_half_life(gamma, value, given->at, err);
    case HALF_LIFE_SHARE:
        return phema_gamma_from_half_life(gamma, value, 1, err);
    case DECAY:
        return phema_gamma_from_sigma_rel(gamma, -1 / log(value) / given->at, err);
    case EMA_HALF_LIFE:
        return phema_gamma_from_sigma_rel(gamma, value / M_LN2 / given->at, err);
    case BETA:
        if (!(given->at > 1))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "--beta: the first step takes the parameters as they are, whatever "
                              "the width; --at must be above 1");
        *gamma = gamma_from_beta(value, given->at);
        return PHEMA_OK;
    default:
        *gamma = value;
        return PHEMA_OK;
    }
}

static enum phema_status translate(struct length *out, const struct convert_values *given,
                                   enum spelling spelling, double value, struct phema_error *err)
{
    const char *option = spellings[spelling].option;
    double gamma = PHEMA_UNKNOWN;
    enum phema_status status = PHEMA_OK;
    if (spellings[spelling].needs_at)
        status = need_at(given, option, err);
    if (!status)
        status = find_gamma(&gamma, given, spelling, value, err);
    if (!status)
        status = from_gamma(out, gamma, given->at, err);
    struct phema_name_buffer shown; /* appended to the option name where the message does not
                                     * show the value */
    bool is_other = spelling == DECAY || spelling == EMA_HALF_LIFE || spelling == BETA;
    if (status && status != PHEMA_ERR_USAGE)
        return phema_fail_in(err, status, "--%s%s%s", option, is_other ? " " : "",
                             is_other ? phema_number_format(&shown, value) : "");
    return status;
}

static enum phema_status write_rows(struct phema_strbuf *text, struct phema_json_out *json,
                                    const struct convert_values *given, struct phema_error *err)
{
    const struct cli_reals *const lists[] = {
        &given->sigma_rel, &given->gamma, &given->half_life,    &given->half_life_share,
        &given->beta,      &given->decay, &given->ema_half_life};
    size_t n = 0;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++, n++) {
            struct length length = {0};
            enum phema_status status =
                translate(&length, given, (enum spelling)l, lists[l]->items[i], err);
            if (!status)
                status = add_row(text, json, &length, err);
            if (status)
                return status;
        }
    if (n == 0)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "convert: nothing to convert; give --sigma-rel, --gamma, --half-life, "
                          "--half-life-rel, --beta, --decay or --ema-half-life");
    return PHEMA_OK;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct convert_values *given = values;
    if (!isnan(given->at) && !(given->at > 0 && given->at < 9007199254740992.0))
        return phema_fail(err, PHEMA_ERR_USAGE, "--at: %g is no time above 0", given->at);
    struct phema_strbuf text = {0};
    struct phema_json_out json = {.text = given->common.is_json ? &text : NULL, .is_pretty = true};
    if (json.text) {
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_u64(&json, "version", 1);
        phema_json_out_open(&json, "lengths", '[');
    } else {
        phema_strbuf_printf(&text, "%-12s %-12s %s", "sigma_rel", "gamma", "half_life_rel");
        phema_strbuf_puts(
            &text, isnan(given->at)
                       ? "\n"
                       : " width        half_life    beta         decay        ema_half_life\n");
    }
    enum phema_status status = write_rows(&text, &json, given, err);
    if (json.text) {
        phema_json_out_close(&json, ']');
        phema_json_out_close(&json, '}');
        phema_strbuf_puts(&text, "\n");
    }
    if (!status)
        status = cli_print(&text, err);
    phema_strbuf_clear(&text);
    return status;
}

#define FIELD(member) offsetof(struct convert_values, member)

static const struct cli_opt rows[] = {
    {"sigma-rel", TARGET, CLI_REALS, FIELD(sigma_rel), "LIST",
     .help = "relative widths: standard deviation in time over\ntraining time"},
    {"gamma", TARGET, CLI_REALS, FIELD(gamma), "LIST", .help = "exponents of power functions"},
    {"half-life", TARGET, CLI_REALS, FIELD(half_life), "LIST",
     .help = "steps in which half the weight lies (needs --at)"},
    {"half-life-rel", TARGET, CLI_REALS, FIELD(half_life_share), "LIST",
     .help = "the same as shares of the training time"},
    {"beta", TARGET, CLI_REALS, FIELD(beta), "LIST",
     .help = "what a power-function EMA keeps of itself at that\nstep (needs --at)"},
    {"decay", TARGET, CLI_REALS, FIELD(decay), "LIST",
     .help =
         "decay of an exponential EMA with the same width\nin steps, such as 0.9999 (needs --at)"},
    {"ema-half-life", TARGET, CLI_REALS, FIELD(ema_half_life), "LIST",
     .help = "half-life of that exponential EMA (needs --at)"},
    {"at", TARGET, CLI_REAL, FIELD(at), "TIME",
     .help = "the training time, in steps or whatever it counts"},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_convert = {
    .name = "convert",
    .summary = "translate between the ways to say how long an average is",
    .options = rows,
    .examples = "  posthoc-ema convert --sigma-rel 0.05,0.1\n"
                "      their exponents and half-lives, as shares of the training\n"
                "  posthoc-ema convert --decay 0.9999 --at 200k\n"
                "      the sigma_rel that fits an exponential EMA at step 200000, and its own\n"
                "      half-life\n",
    .values_size = sizeof(struct convert_values),
    .run = run,
};
