// SPDX-License-Identifier: Apache-2.0
/* options.c - the options of a series: the caller's become those of series.h, copied, and written
 * as options of the command. */
#include "api.h"

#include <math.h>
#include <string.h>

static const char *const use_names[] = {
    [PHEMA_USE_ALL] = "all", [PHEMA_USE_AVERAGES] = "averages", [PHEMA_USE_RAW] = "raw", NULL};

#define TO(member)             offsetof(struct phema_series_options, member)
#define FROM(member)           offsetof(struct posthoc_ema_series_options, member)
#define VALUE(member)          TO(member), FROM(member), 0, 0
#define ITEMS(member, n_items) TO(member), FROM(member), TO(n_items), FROM(n_items)

/* In the order of the command. Numbers that are 0 or infinite are not given. */
static const struct member {
    enum phema_setting setting;
    enum { TEXT, TEXTS, NUMBER, NUMBERS, COUNT, USE } kind;
    size_t to, from;     /* offsets in our struct and in the caller's */
    size_t n_to, n_from; /* of lists: those of their numbers of items */
} members[] = {
    {PHEMA_SET_LAYOUT, TEXT, VALUE(layout)},
    {PHEMA_SET_NAME_REGEX, TEXT, VALUE(name_regex)},
    {PHEMA_SET_UNIT, TEXT, VALUE(unit)},
    {PHEMA_SET_KEY, TEXT, VALUE(key)},
    {PHEMA_SET_INPUT_SIGMA, NUMBERS, ITEMS(input_sigmas, n_input_sigmas)},
    {PHEMA_SET_INPUT_PROFILE, TEXTS, ITEMS(input_profiles, n_input_profiles)},
    {PHEMA_SET_UPDATE_EVERY, COUNT, VALUE(update_every)},
    {PHEMA_SET_RESET_AT, TEXTS, ITEMS(resets, n_resets)},
    {PHEMA_SET_TIME_OFFSET, NUMBER, VALUE(time_offset)},
    {PHEMA_SET_RUN, TEXT, VALUE(run)},
    {PHEMA_SET_USE, USE, VALUE(use)},
    {PHEMA_SET_FROM, NUMBER, VALUE(from)},
    {PHEMA_SET_TO, NUMBER, VALUE(to)},
    {PHEMA_SET_EVERY, COUNT, VALUE(every)},
    {PHEMA_SET_LAST, COUNT, VALUE(last)},
    {PHEMA_SET_INCLUDE, TEXTS, ITEMS(includes, n_includes)},
    {PHEMA_SET_EXCLUDE, TEXTS, ITEMS(excludes, n_excludes)},
    {PHEMA_SET_ALLOW_GLOBAL, TEXTS, TO(checkpoint.allow_globals), FROM(allow_globals),
     TO(checkpoint.n_allow_globals), FROM(n_allow_globals)},
};

/* ---- Copies ---- */

void api_keep_text(struct phema_arena *arena, const char **text)
{
    if (*text)
        *text = phema_arena_copy(arena, *text, strlen(*text));
}

void api_keep_texts(struct phema_arena *arena, const char *const **texts, size_t n)
{
    const char **copy = phema_arena_array(arena, n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = (*texts)[i];
        api_keep_text(arena, &copy[i]);
    }
    *texts = copy;
}

static void keep_numbers(struct phema_arena *arena, const double **numbers, size_t n)
{
    double *copy = phema_arena_array(arena, n + 1, sizeof(*copy));
    if (copy && n)
        memcpy(copy, *numbers, n * sizeof(*copy));
    *numbers = copy;
}

PHEMA_FALLIBLE api_options_copy(struct api_options *copy, const struct api_options *kept,
                                struct phema_error *err)
{
    copy->options = kept->options;
    copy->command = kept->command;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *member = &members[i];
        char *options = (char *)&copy->options;
        void *at = options + member->to;
        const size_t *n = (const size_t *)(options + member->n_to); /* of a list */
        if (member->kind == TEXT)
            api_keep_text(&copy->arena, at);
        else if (member->kind == TEXTS)
            api_keep_texts(&copy->arena, at, *n);
        else if (member->kind == NUMBERS)
            keep_numbers(&copy->arena, at, *n);
    }
    api_keep_text(&copy->arena, &copy->options.snapshots);
    api_keep_text(&copy->arena, &copy->command);
    return copy->arena.is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

/* ---- The same options on the command line ---- */

void api_options_add(struct phema_strbuf *command, enum phema_setting setting, const char *value)
{
    if (!value)
        return;
    phema_strbuf_printf(command, " %s ", phema_setting_dashed(setting));
    phema_strbuf_put_word(command, value);
}

static void add_numbers(struct phema_strbuf *command, enum phema_setting setting,
                        const double *values, size_t n)
{
    struct phema_name_buffer shown;
    if (n)
        phema_strbuf_printf(command, " %s ", phema_setting_dashed(setting));
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(command, "%s%s", i ? "," : "", phema_number_format(&shown, values[i]));
}

static void add_member(struct phema_strbuf *command, const struct member *member,
                       const struct phema_series_options *options)
{
    const void *at = (const char *)options + member->to;
    const size_t *n = (const void *)((const char *)options + member->n_to); /* of a list */
    double number = 0;
    switch (member->kind) {
    case TEXT:
        api_options_add(command, member->setting, *(const char *const *)at);
        break;
    case TEXTS:
        for (size_t i = 0; i < *n; i++)
            api_options_add(command, member->setting, (*(const char *const *const *)at)[i]);
        break;
    case NUMBERS:
        add_numbers(command, member->setting, *(const double *const *)at, *n);
        break;
    case NUMBER:
    case COUNT:
        number = member->kind == NUMBER ? *(const double *)at : (double)*(const uint64_t *)at;
        if (number != 0 && isfinite(number))
            add_numbers(command, member->setting, &number, 1);
        break;
    case USE:
        api_options_add(command, member->setting, options->use ? use_names[options->use] : NULL);
        break;
    }
}

/* ---- Options ---- */

static enum phema_status convert(struct phema_series_options *out, const char *snapshots,
                                 const struct posthoc_ema_series_options *given,
                                 struct phema_error *err)
{
    static const size_t sizes[] = {
        [TEXT] = sizeof(char *),    [TEXTS] = sizeof(void *),   [NUMBER] = sizeof(double),
        [NUMBERS] = sizeof(void *), [COUNT] = sizeof(uint64_t), [USE] = 0};
    struct posthoc_ema_series_options o;
    size_t use = 0;
    enum phema_status status =
        call_read_struct(&o, sizeof(o), given, "posthoc_ema_series_options", err);
    if (!status)
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
    *out = (struct phema_series_options){.snapshots = snapshots, .use = (int)use};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *member = &members[i];
        memcpy((char *)out + member->to, (const char *)&o + member->from, sizes[member->kind]);
        if (member->n_to)
            memcpy((char *)out + member->n_to, (const char *)&o + member->n_from, sizeof(size_t));
    }
    if (o.from == 0)
        out->from = -HUGE_VAL;
    if (o.to == 0)
        out->to = HUGE_VAL;
    return PHEMA_OK;
}

PHEMA_FALLIBLE api_options_keep(struct api_options *kept, const char *snapshots,
                                const struct posthoc_ema_series_options *given,
                                struct phema_error *err)
{
    struct api_options borrowed = {.command = NULL};
    enum phema_status status = convert(&borrowed.options, snapshots, given, err);
    if (status)
        return status;
    struct phema_strbuf command = {0};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        add_member(&command, &members[i], &borrowed.options);
    phema_strbuf_puts(&command, " ");
    phema_strbuf_put_operand(&command, snapshots);
    status = phema_strbuf_check(&command, err);
    borrowed.command = command.data;
    if (!status)
        status = api_options_copy(kept, &borrowed, err);
    phema_strbuf_clear(&command);
    return status;
}
