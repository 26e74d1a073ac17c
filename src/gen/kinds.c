// SPDX-License-Identifier: Apache-2.0
/* kinds.c - see kinds.h. */
#include "kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shortest decimals that read back as the same number, at least 3: 0.050, 0.0125. */
static void print_sigma(char *text, size_t size, double sigma_rel)
{
    for (int digits = 3; digits <= 40; digits++) {
        (void)snprintf(text, size, "%.*f", digits, sigma_rel);
        if (strtod(text, NULL) == sigma_rel)
            return;
    }
}

enum phema_status gen_kind_of_width(struct gen_kind *kind, double sigma_rel, uint64_t update_every,
                                    struct phema_error *err)
{
    *kind = (struct gen_kind){
        .profile = {.shape = PHEMA_SHAPE_POWER, .update_every = update_every},
        .sigma_rel = sigma_rel,
    };
    print_sigma(kind->name, sizeof(kind->name), sigma_rel);
    return phema_gamma_from_sigma_rel(&kind->profile.gamma, sigma_rel, err);
}

/* ---- Other shapes ---- */

static enum phema_status check_table(const struct phema_betas *betas, struct phema_error *err)
{
    if (!betas || !betas->n)
        return phema_fail(err, PHEMA_ERR_USAGE, "a table without steps");
    for (size_t i = 0; i < betas->n; i++) {
        if (betas->steps[i] <= (i ? betas->steps[i - 1] : 0))
            return phema_fail(err, PHEMA_ERR_USAGE, "steps of a table: expected ascending from 1");
        if (!(betas->betas[i] >= 0 && betas->betas[i] <= 1))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "beta at step %llu: expected a number from 0 to 1, found %g",
                              (unsigned long long)betas->steps[i], betas->betas[i]);
    }
    return PHEMA_OK;
}

static enum phema_status check_above(const char *what, double value, double least,
                                     struct phema_error *err)
{
    if (value > least && value < 0x1p53)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "%s: expected a number above %g and below 2^53, found "
                      "%g",
                      what, least, value);
}

static enum phema_status check_profile(const struct phema_profile *profile, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    switch (profile->shape) {
    case PHEMA_SHAPE_POWER:
        return check_above("gamma", profile->gamma, -0.5, err);
    case PHEMA_SHAPE_RAMPED:
        status = check_above("ramp", profile->ramp, 0, err);
        return status ? status : check_above("half-life", profile->half_life, 0, err);
    case PHEMA_SHAPE_EMA:
        return check_above("half-life", profile->half_life, 0, err);
    case PHEMA_SHAPE_WINDOW:
    case PHEMA_SHAPE_COSINE:
    case PHEMA_SHAPE_MINUS_SQRT:
        return check_above("length", profile->length, 0, err);
    case PHEMA_SHAPE_TABLE:
        return check_table(profile->betas, err);
    case PHEMA_SHAPE_RAW:
        break;
    }
    return status;
}

enum phema_status gen_kind_of_profile(struct gen_kind *kind, const struct phema_gen_profile *from,
                                      uint64_t update_every, struct phema_error *err)
{
    bool is_power = from->profile.shape == PHEMA_SHAPE_POWER;
    if (is_power && from->profile.update_every)
        update_every = from->profile.update_every;
    if (is_power && !isnan(from->sigma_rel))
        return gen_kind_of_width(kind, from->sigma_rel, update_every, err);
    *kind = (struct gen_kind){.profile = from->profile, .text = is_power ? NULL : from->text};
    kind->is_by_gamma = is_power;
    kind->profile.t = 0;
    kind->profile.label = NULL;
    kind->profile.update_every = is_power ? update_every : 1;
    kind->sigma_rel = is_power ? phema_sigma_rel_from_gamma(from->profile.gamma) : (double)NAN;
    enum phema_status status = check_profile(&kind->profile, err);
    int size = snprintf(kind->name, sizeof(kind->name), "%s", from->name);
    if (!status && (size < 1 || (size_t)size >= sizeof(kind->name) || strchr(from->name, '/')))
        status = phema_fail(err, PHEMA_ERR_USAGE, "cannot be part of a file's name");
    return status ? phema_fail_in(err, status, "%s", from->text) : PHEMA_OK;
}
