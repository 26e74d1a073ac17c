// SPDX-License-Identifier: Apache-2.0
/* options.c - copies the options of a series and writes them as options of the command. */
#include "phema/setting.h"
#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Copies ---- */

bool api_keep_text(struct phema_arena *arena, const char **text)
{
    if (!*text)
        return true;
    *text = phema_arena_copy(arena, *text, strlen(*text));
    return *text != NULL;
}

bool api_keep_texts(struct phema_arena *arena, const char *const **texts, size_t n)
{
    const char **copy = phema_arena_array(arena, n + 1, sizeof(*copy));
    bool is_kept = copy != NULL;
    for (size_t i = 0; is_kept && i < n; i++) {
        copy[i] = (*texts)[i];
        is_kept = api_keep_text(arena, &copy[i]);
    }
    *texts = copy;
    return is_kept;
}

static bool copy_numbers(struct phema_arena *arena, const double **numbers, size_t n)
{
    double *copy = phema_arena_array(arena, n + 1, sizeof(*copy));
    if (copy && n)
        memcpy(copy, *numbers, n * sizeof(*copy));
    *numbers = copy;
    return copy != NULL;
}

static enum phema_status copy_to_arena(struct api_options *kept, struct phema_error *err)
{
    struct phema_arena *arena = &kept->arena;
    struct phema_series_options *o = &kept->options;
    bool is_kept =
        api_keep_text(arena, &o->snapshots) && api_keep_text(arena, &o->layout) &&
        api_keep_text(arena, &o->name_regex) && api_keep_text(arena, &o->unit) &&
        api_keep_text(arena, &o->key) && copy_numbers(arena, &o->input_sigmas, o->n_input_sigmas) &&
        api_keep_texts(arena, &o->input_profiles, o->n_input_profiles) &&
        api_keep_texts(arena, &o->includes, o->n_includes) &&
        api_keep_texts(arena, &o->excludes, o->n_excludes) &&
        api_keep_texts(arena, &o->checkpoint.allow_globals, o->checkpoint.n_allow_globals) &&
        api_keep_texts(arena, &o->resets, o->n_resets) && api_keep_text(arena, &o->run) &&
        api_keep_text(arena, &kept->command);
    return is_kept ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- The same options on the command line ---- */

void api_options_add(struct phema_strbuf *command, enum phema_setting setting, const char *value)
{
    if (!value)
        return;
    phema_strbuf_printf(command, " %s ", phema_setting_dashed(setting));
    phema_strbuf_put_word(command, value);
}

static void add_number(struct phema_strbuf *command, enum phema_setting setting, double value)
{
    struct phema_name_buffer shown;
    phema_strbuf_printf(command, " %s %s", phema_setting_dashed(setting),
                        phema_number_format(&shown, value));
}

static void add_texts(struct phema_strbuf *command, enum phema_setting setting,
                      const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        api_options_add(command, setting, texts[i]);
}

static const char *const use_names[] = {
    [PHEMA_USE_ALL] = "all", [PHEMA_USE_AVERAGES] = "averages", [PHEMA_USE_RAW] = "raw", NULL};

static void write_command(struct phema_strbuf *out, const struct phema_series_options *o)
{
    struct phema_name_buffer shown;
    api_options_add(out, PHEMA_SET_LAYOUT, o->layout);
    api_options_add(out, PHEMA_SET_NAME_REGEX, o->name_regex);
    api_options_add(out, PHEMA_SET_UNIT, o->unit);
    api_options_add(out, PHEMA_SET_KEY, o->key);
    for (size_t i = 0; i < o->n_input_sigmas; i++)
        phema_strbuf_printf(out, "%s%s%s", i ? "," : " ",
                            i ? "" : phema_setting_dashed(PHEMA_SET_INPUT_SIGMA),
                            phema_number_format(&shown, o->input_sigmas[i]));
    add_texts(out, PHEMA_SET_INPUT_PROFILE, o->input_profiles, o->n_input_profiles);
    if (o->update_every)
        add_number(out, PHEMA_SET_UPDATE_EVERY, (double)o->update_every);
    add_texts(out, PHEMA_SET_RESET_AT, o->resets, o->n_resets);
    if (o->time_offset != 0)
        add_number(out, PHEMA_SET_TIME_OFFSET, o->time_offset);
    api_options_add(out, PHEMA_SET_RUN, o->run);
    if (o->use)
        api_options_add(out, PHEMA_SET_USE, use_names[o->use]);
    if (isfinite(o->from))
        add_number(out, PHEMA_SET_FROM, o->from);
    if (isfinite(o->to))
        add_number(out, PHEMA_SET_TO, o->to);
    if (o->every)
        add_number(out, PHEMA_SET_EVERY, (double)o->every);
    if (o->last)
        add_number(out, PHEMA_SET_LAST, (double)o->last);
    add_texts(out, PHEMA_SET_INCLUDE, o->includes, o->n_includes);
    add_texts(out, PHEMA_SET_EXCLUDE, o->excludes, o->n_excludes);
    add_texts(out, PHEMA_SET_ALLOW_GLOBAL, o->checkpoint.allow_globals,
              o->checkpoint.n_allow_globals);
    phema_strbuf_puts(out, " ");
    phema_strbuf_put_operand(out, o->snapshots);
}

/* ---- Options ---- */

static enum phema_status convert(struct phema_series_options *out, const char *snapshots,
                                 const struct posthoc_ema_series_options *given,
                                 struct phema_error *err)
{
    struct posthoc_ema_series_options o;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), given, "posthoc_ema_series_options", err);
    if (status)
        return status;
    size_t use = 0;
    status = call_find_choice(&use, o.use, use_names, "use", err);
    if (status)
        return status;
    if (!isfinite(o.time_offset))
        return phema_fail(err, PHEMA_ERR_USAGE, "time_offset: expected a number, found %g",
                          o.time_offset);
    if (!snapshots)
        return phema_fail(err, PHEMA_ERR_USAGE, "snapshots: expected a path, found NULL");
    for (size_t i = 0; i < o.n_input_sigmas; i++) {
        double unused = 0;
        if (phema_gamma_from_sigma_rel(&unused, o.input_sigmas[i], err))
            return phema_fail_in_setting(err, PHEMA_ERR_INPUTS, PHEMA_SET_INPUT_SIGMA);
    }
    *out = (struct phema_series_options){
        .snapshots = snapshots,
        .layout = o.layout,
        .name_regex = o.name_regex,
        .unit = o.unit,
        .key = o.key,
        .input_sigmas = o.input_sigmas,
        .n_input_sigmas = o.n_input_sigmas,
        .input_profiles = o.input_profiles,
        .n_input_profiles = o.n_input_profiles,
        .update_every = o.update_every,
        .resets = o.resets,
        .n_resets = o.n_resets,
        .time_offset = o.time_offset,
        .use = (int)use,
        .from = o.from != 0 ? o.from : -HUGE_VAL,
        .to = o.to != 0 ? o.to : HUGE_VAL,
        .every = o.every,
        .last = o.last,
        .run = o.run,
        .includes = o.includes,
        .n_includes = o.n_includes,
        .excludes = o.excludes,
        .n_excludes = o.n_excludes,
        .checkpoint = {.allow_globals = o.allow_globals, .n_allow_globals = o.n_allow_globals},
    };
    return PHEMA_OK;
}

PHEMA_FALLIBLE api_options_keep(struct api_options *kept, const char *snapshots,
                                const struct posthoc_ema_series_options *given,
                                struct phema_error *err)
{
    enum phema_status status = convert(&kept->options, snapshots, given, err);
    if (status)
        return status;
    struct phema_strbuf command = {0};
    write_command(&command, &kept->options);
    status = phema_strbuf_check(&command, err);
    kept->command = command.data;
    if (!status)
        status = copy_to_arena(kept, err);
    phema_strbuf_clear(&command);
    return status;
}

PHEMA_FALLIBLE api_options_copy(struct api_options *copy, const struct api_options *kept,
                                struct phema_error *err)
{
    copy->options = kept->options;
    copy->command = kept->command;
    return copy_to_arena(copy, err);
}

void api_options_clear(struct api_options *kept)
{
    phema_arena_clear(&kept->arena);
}
