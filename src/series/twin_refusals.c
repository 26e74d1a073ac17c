// SPDX-License-Identifier: Apache-2.0
/* twin_refusals.c - several kinds of files of which nothing says what to average: what is said, and
 * what is proposed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/setting.h"
#include "twin_kinds.h"

static const struct candidate *find_of_kind(const struct candidate_list *candidates,
                                            const struct kinds *kinds, const char *text)
{
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i] && strcmp(kinds->of[i], text) == 0)
            return &candidates->items[i];
    return NULL;
}

/* The names of a kind of files, with a group for their time. false: files of a folder have no numbers
 * of their own. */
static bool add_pattern(struct phema_strbuf *pattern, const struct candidate_list *candidates,
                        const struct kinds *kinds, const char *text)
{
    const struct candidate *one = find_of_kind(candidates, kinds, text);
    const char *at = one->base, *time = (const char *)one->time_text.data;
    if (strchr(text, '/') || !time)
        return false;
    phema_strbuf_puts(pattern, "^");
    while (*at) {
        size_t size = at == time ? one->time_text.size
                                 : strspn(at, candidates->has_families ? "" : "0123456789");
        if (at == time)
            phema_strbuf_puts(pattern, isdigit((unsigned char)at[size - 1])
                                           ? "(?<time>[0-9]+)"
                                           : "(?<time>[0-9.]+[A-Za-z]?)");
        else if (size)
            phema_strbuf_puts(pattern, "[0-9]+");
        else
            name_quote(pattern, at, 1);
        at += size ? size : 1;
    }
    phema_strbuf_puts(pattern, "$");
    return true;
}

PHEMA_FALLIBLE kinds_suggest(const struct candidate_list *candidates, const struct kinds *kinds,
                             const char *text, const char *beside, struct phema_error *err)
{
    struct phema_strbuf pattern = {0};
    if (beside)
        phema_strbuf_puts(&pattern, "(?|"); /* groups of one name */
    bool is_made = add_pattern(&pattern, candidates, kinds, text);
    if (is_made && beside) {
        phema_strbuf_puts(&pattern, "|");
        is_made = add_pattern(&pattern, candidates, kinds, beside);
        phema_strbuf_puts(&pattern, ")");
    }
    if (is_made && !pattern.is_failed)
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_NAME_REGEX, pattern.data);
    phema_strbuf_clear(&pattern);
    return PHEMA_ERR_INPUTS;
}

static uint64_t size_of_newest(const struct candidate_list *candidates, const struct kinds *kinds,
                               const char *text)
{
    struct stat st;
    const struct candidate *one = find_of_kind(candidates, kinds, text);
    return one && stat(one->path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* A file or two of another kind, as copies are: "ckpt_50-old.pt". NULL: there are none. */
static const struct candidate *find_stray(const struct candidate_list *candidates,
                                          const struct kinds *kinds)
{
    enum { RARE = 4 }; /* so many times more of the most frequent kind */
    const struct kind *most = kinds->items, *least = kinds->items;
    for (size_t k = 1; k < kinds->n; k++) {
        most = kinds->items[k].n > most->n ? &kinds->items[k] : most;
        least = kinds->items[k].n < least->n ? &kinds->items[k] : least;
    }
    return least->n == 1 && most->n >= RARE ? find_of_kind(candidates, kinds, least->text) : NULL;
}

static const struct candidate *find_beside(const struct candidate_list *candidates,
                                           const struct candidate *file)
{
    for (size_t i = 0; i < candidates->n; i++)
        if (&candidates->items[i] != file && !candidates->items[i].is_left_out &&
            candidates->items[i].named_time == file->named_time)
            return &candidates->items[i];
    return NULL;
}

/* A copy beside the file of a time. */
static enum phema_status fail_stray(const struct candidate *stray, const struct candidate *beside,
                                    const char *root, struct phema_error *err)
{
    struct phema_name_buffer shown[2];
    (void)phema_fail(err, PHEMA_ERR_INPUTS,
                     "%s: '%s' is of the time of '%s', and other times have no file of its kind; "
                     "leave one of them out",
                     root, phema_name_show(&shown[0], stray->label),
                     phema_name_show(&shown[1], beside->label));
    return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_EXCLUDE_FILE, stray->label);
}

/* Lists the kinds, and proposes the one with the largest files.
 *   has_equal  some have one time */
PHEMA_FALLIBLE kinds_fail(const struct candidate_list *candidates, const struct kinds *kinds,
                          bool has_equal, const char *root, struct phema_error *err)
{
    const struct candidate *stray = find_stray(candidates, kinds);
    const struct candidate *beside = stray ? find_beside(candidates, stray) : NULL;
    if (beside)
        return fail_stray(stray, beside, root, err);
    struct phema_strbuf list = {0};
    const char *largest = kinds->items[0].text;
    bool is_in_folders = false;
    for (size_t k = 0; k < kinds->n; k++) {
        const char *text = kinds->items[k].text;
        struct phema_name_buffer shown;
        is_in_folders |= strchr(text, '/') != NULL;
        phema_strbuf_printf(&list, "%s'%s' (%zu)",
                            k == 0             ? ""
                            : k + 1 < kinds->n ? ", "
                                               : " and ",
                            phema_name_show(&shown, text), kinds->items[k].n);
        if (size_of_newest(candidates, kinds, text) > size_of_newest(candidates, kinds, largest))
            largest = text;
    }
    const char *name_regex = phema_setting_name(PHEMA_SET_NAME_REGEX);
    enum phema_status status = phema_strbuf_check(&list, err);
    if (!status)
        status =
            phema_fail(err, PHEMA_ERR_INPUTS,
                       "%s: %s, %s, and nothing says which is the model; choose with %s%s@list or "
                       "a manifest",
                       root, has_equal ? "several files of each time" : "files of several names",
                       list.data, is_in_folders ? "" : name_regex, is_in_folders ? "" : ", ");
    phema_strbuf_clear(&list);
    return status == PHEMA_ERR_INPUTS && !is_in_folders
               ? kinds_suggest(candidates, kinds, largest, NULL, err)
               : status;
}

/* Kinds that are all averages. */
PHEMA_FALLIBLE kinds_fail_averages(const struct candidate_list *candidates,
                                   const struct kinds *kinds, const char *root,
                                   struct phema_error *err)
{
    const char *names[MOST_KINDS] = {kinds->items[0].text};
    for (size_t k = 1; k < kinds->n; k++)
        names[k] = kinds->items[k].text;
    char *pattern = strchr(names[0], '/') ? NULL : names_write_widths(names, kinds->n);
    if (!pattern)
        return kinds_fail(candidates, kinds, true, root, err);
    struct phema_name_buffer shown[2];
    (void)phema_fail(err, PHEMA_ERR_INPUTS,
                     "%s: names like '%s' and '%s' differ in a number; if it is the width, %s says "
                     "so with a group 'sigma'",
                     root, phema_name_show(&shown[0], names[0]),
                     phema_name_show(&shown[1], names[1]),
                     phema_setting_name(PHEMA_SET_NAME_REGEX));
    (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_NAME_REGEX, pattern);
    free(pattern);
    return PHEMA_ERR_INPUTS;
}
