// SPDX-License-Identifier: Apache-2.0
/* widths.c - how wide the average of a candidate is: by its name, its file, or the options. */
#include <math.h>
#include <stdio.h>

#include "open_snapshots.h"

PHEMA_FALLIBLE widths_fail_unsaid(const struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    const struct layout *layout = opening->scan.layout;
    char every[64] = "";
    char sigmas[64] = "";
    if (!options->n_input_sigmas && !options->n_input_profiles)
        (void)snprintf(sigmas, sizeof(sigmas), " --input-sigma %s", layout->default_sigmas);
    if (!options->update_every)
        (void)snprintf(every, sizeof(every), " --update-every %llu",
                       (unsigned long long)layout->default_update_every);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: %s writes neither sigma_rel nor update_every into its files, and without "
        "them the weights would be wrong; if the training used that library's "
        "defaults, run: %s%s%s%s",
        options->snapshots, layout->library, options->command, sigmas, every,
        options->command_tail);
}

PHEMA_FALLIBLE widths_find(const struct opening *opening, struct candidate *candidate,
                           struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    enum phema_status status = profile_find(opening, candidate, err);
    if (status)
        return phema_fail_in(err, status, "%s: %s", options->snapshots, candidate->label);
    if (candidate->spec)
        return PHEMA_OK;
    if (isnan(candidate->sigma_rel) && isnan(candidate->gamma) && options->n_input_sigmas) {
        uint64_t index = candidate->index == UINT64_MAX ? 0 : candidate->index;
        if (candidate->index == UINT64_MAX && options->n_input_sigmas > 1)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: its name has no index to choose among the %zu widths of "
                              "--input-sigma",
                              candidate->label, options->n_input_sigmas);
        if (index >= options->n_input_sigmas)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: has index %llu, but --input-sigma gives %zu width%s, from 0",
                              candidate->label, (unsigned long long)index, options->n_input_sigmas,
                              options->n_input_sigmas == 1 ? "" : "s");
        candidate->sigma_rel = options->input_sigmas[index];
    }
    candidate->is_by_gamma = isnan(candidate->sigma_rel);
    if (!isnan(candidate->sigma_rel)) {
        status = phema_gamma_from_sigma_rel(&candidate->gamma, candidate->sigma_rel, err);
        if (status == PHEMA_ERR_TARGET)
            status = PHEMA_ERR_INPUTS;
    } else if (!isnan(candidate->gamma)) {
        if (!(candidate->gamma > -0.5) || !(candidate->gamma < 1e9))
            status =
                phema_fail(err, PHEMA_ERR_INPUTS, "gamma %g is not above -0.5", candidate->gamma);
        else
            candidate->sigma_rel = phema_sigma_rel_from_gamma(candidate->gamma);
    } else if (!options->needs_no_profiles) {
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "says no width, in its name or metadata; give --input-sigma, or "
                            "--input-profile for another shape");
    }
    if (!status && options->update_every) {
        if (candidate->update_every && candidate->update_every != options->update_every)
            status = phema_fail(err, PHEMA_ERR_INPUTS,
                                "says that it was updated every %llu steps, --update-every %llu",
                                (unsigned long long)candidate->update_every,
                                (unsigned long long)options->update_every);
        candidate->update_every = options->update_every;
    }
    return status ? phema_fail_in(err, status, "%s: %s", options->snapshots, candidate->label)
                  : PHEMA_OK;
}

bool width_is_meant(const struct candidate *candidate, double width)
{
    double named = candidate->sigma_rel, slack = candidate->sigma_slack;
    if (isnan(named) && !isnan(candidate->gamma))
        named = phema_sigma_rel_from_gamma(candidate->gamma);
    slack += 1e-9 * fabs(width); /* of a conversion */
    return !candidate->spec && (isnan(named) || fabs(named - width) <= slack);
}

void width_take(struct candidate *candidate, double width)
{
    if (isnan(candidate->gamma))
        candidate->sigma_rel = width;
}

PHEMA_FALLIBLE width_fail(const struct candidate *candidate, const char *key,
                          struct phema_error *err)
{
    struct phema_name_buffer shown;
    bool is_width = !isnan(candidate->sigma_rel);
    if (candidate->spec)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: is said to be %s, but the 'stds' of '%s' inside are widths of power "
                          "functions; mend what is wrong",
                          candidate->path, candidate->spec->shown, key);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: its name or manifest says %s %s, which is not in the 'stds' of '%s' "
        "inside; mend what is wrong",
        candidate->path, is_width ? "sigma_rel" : "gamma",
        phema_number_format(&shown, is_width ? candidate->sigma_rel : candidate->gamma), key);
}
