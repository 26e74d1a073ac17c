// SPDX-License-Identifier: Apache-2.0
/* auto_profile.c - --input-profile auto: how averages were kept where nothing says it. Raw parameters
 * beside them tell (decays.c), or the average alone (lone_profile.c). */
#include <math.h>
#include <string.h>

#include "lone_profile.h"
#include "phema/setting.h"

/* ---- Averages beside raw parameters ---- */

/* PHEMA_NO: there are none. */
static enum phema_status find_beside(struct finding *found, const struct phema_series *bare,
                                     const struct phema_series_options *options,
                                     struct phema_error *err)
{
    struct phema_decays decays;
    size_t n = 0;
    enum phema_status status = phema_decays_find(&decays, bare, options, NULL, err);
    if (status)
        return status;
    const struct phema_decay_set *only = phema_decays_find_unclaimed(&n, &decays);
    struct phema_strbuf why = {0};
    if (n > 1) {
        found->why = "there are several averages, and it finds the profile of one";
    } else if (n == 1) {
        phema_strbuf_puts(&why, "the raw parameters beside ");
        phema_decay_set_write(&why, only, bare->unit);
        if (only->doubted)
            found->doubted = phema_arena_copy(&found->memory, only->doubted, strlen(only->doubted));
        if (!isnan(only->fits_from)) {
            struct phema_name_buffer from;
            found->from = phema_arena_printf(&found->memory, "%s",
                                             phema_number_format(&from, only->fits_from));
            phema_strbuf_printf(&why, "; from %s on %s fits", found->from, only->fits);
        }
        status = finding_finish(found, found->from ? NULL : only->fits, &why, err);
    } else {
        status = PHEMA_NO;
    }
    phema_decays_clear(&decays);
    return status;
}

/* ---- Together ---- */

static enum phema_status find_profile(struct finding *found,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    struct phema_series_options bare = *options;
    struct phema_series *series = NULL;
    bare.needs_no_profiles = bare.compares_samples = true;
    enum phema_status status = phema_series_open(&series, &bare, err);
    if (status)
        return status;
    bool is_known = series->has_profiles && !series->assumed;
    if (is_known) {
        found->why = "the files say how their averages were kept";
    } else {
        status = find_beside(found, series, &bare, err);
        if (status == PHEMA_NO)
            status = lone_profile_find(found, series, options, err);
    }
    if (!status && !found->spec && !is_known)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: %sauto finds no profile: %s", series->root,
                            phema_setting_equals(PHEMA_SET_INPUT_PROFILE), found->why);
    if (found->from)
        (void)phema_suggest(err, status, PHEMA_SET_FROM, found->from);
    phema_series_close(series);
    return status;
}

/* Adds a note to those of a series, which come before its warnings. */
static enum phema_status add_note(struct phema_series *series, const struct finding *found,
                                  struct phema_error *err)
{
    size_t n = series->n_notes, n_plain = n - series->n_warnings;
    char **notes = phema_arena_array(&series->memory, n + 1, sizeof(*notes));
    char *note = found->spec ? phema_arena_printf(&series->memory, "profile: %s%s: %s",
                                                  phema_setting_equals(PHEMA_SET_INPUT_PROFILE),
                                                  found->spec, found->why)
                             : phema_arena_printf(&series->memory, "profile: %s", found->why);
    if (!notes || !note)
        return phema_fail_memory(err);
    memcpy(notes, series->notes, n_plain * sizeof(*notes));
    notes[n_plain] = note;
    memcpy(notes + n_plain + 1, series->notes + n_plain, series->n_warnings * sizeof(*notes));
    series->notes = notes;
    series->n_notes++;
    return PHEMA_OK;
}

/* Keeps the profile that was found in the memory of the series. */
static enum phema_status keep_profile(struct phema_series_options *options,
                                      struct phema_series *series, const char *spec,
                                      struct phema_error *err)
{
    const char **kept = phema_arena_array(&series->memory, 1, sizeof(*kept));
    if (!kept || !(kept[0] = phema_arena_copy(&series->memory, spec, strlen(spec))))
        return phema_fail_memory(err);
    options->input_profiles = kept;
    return PHEMA_OK;
}

static bool asks_for_auto(const struct phema_series_options *options)
{
    for (size_t i = 0; i < options->n_input_profiles; i++)
        if (strcmp(options->input_profiles[i], "auto") == 0)
            return true;
    return false;
}

PHEMA_FALLIBLE phema_series_open_auto(struct phema_series **out,
                                      struct phema_series_options *options, struct phema_error *err)
{
    if (!asks_for_auto(options))
        return phema_series_open(out, options, err);
    if (options->n_input_profiles > 1)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_PROFILE,
                                  "auto is one profile for all snapshots; give it alone");
    struct finding found = {.spec = NULL};
    options->n_input_profiles = 0;
    enum phema_status status = find_profile(&found, options, err);
    if (!status && found.spec) {
        options->input_profiles = &found.spec;
        options->n_input_profiles = 1;
    }
    if (!status)
        status = phema_series_open(out, options, err);
    if (!status && found.spec)
        status = keep_profile(options, *out, found.spec, err);
    if (!status && found.spec && found.doubted)
        (*out)->doubted = phema_arena_copy(&(*out)->memory, found.doubted, strlen(found.doubted));
    if (!status)
        status = add_note(*out, &found, err);
    phema_arena_clear(&found.memory);
    return status;
}
