// SPDX-License-Identifier: Apache-2.0
/* no_snapshots.c - why a directory holds no snapshots, and what to name instead: a folder in it,
 * the folder above, or a regular expression for its names. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/path.h"
#include "phema/setting.h"
#include "twins.h"

/* The names in a directory, read as those of snapshots. */
struct listing {
    struct phema_arena memory;
    struct candidate_list candidates;
    size_t n; /* that may be snapshots */
};

static size_t count(const struct candidate_list *candidates)
{
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++)
        n += !candidates->items[i].is_left_out;
    return n;
}

static bool open_listing(struct listing *listing, const char *path)
{
    struct phema_error ignored = {0};
    struct phema_series_options options = {.snapshots = path};
    bool counts_steps = false;
    *listing = (struct listing){.candidates = {.arena = &listing->memory}};
    if (discover_snapshots(&listing->candidates, &options, &ignored))
        return false;
    listing->n = count(&listing->candidates);
    if (listing->n == 0 &&
        !name_times_find(&options.name_regex, &counts_steps, &listing->candidates, &ignored) &&
        (options.name_regex ||
         !name_families_find(&options.name_regex, &listing->candidates, &ignored)) &&
        options.name_regex && !names_read_again(&listing->candidates, &options, &ignored))
        listing->n = count(&listing->candidates);
    return true;
}

static void close_listing(struct listing *listing)
{
    phema_strbuf_clear(&listing->candidates.notes);
    phema_strbuf_clear(&listing->candidates.warnings);
    phema_arena_clear(&listing->memory);
}

#define MOST_PROBED 64 /* files whose first bytes are read */

/* Checkpoints of a format that is not read, here or in the folders. */
static bool find_foreign(const struct listing *listing, const char *path, struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t i = 0; i < listing->candidates.n && i < MOST_PROBED && listing->n == 0; i++) {
        const struct candidate *candidate = &listing->candidates.items[i];
        const char *sentence = phema_foreign_file(candidate->path);
        if (!sentence)
            continue;
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots here; '%s' %s", path,
                         phema_name_show(&shown, candidate->base), sentence);
        return true;
    }
    const char *kind = phema_foreign_directory(path);
    for (size_t i = 0; i < listing->candidates.n && !kind; i++)
        if (phema_path_is_directory(listing->candidates.items[i].path))
            kind = phema_foreign_directory(listing->candidates.items[i].path);
    if (kind)
        (void)phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: holds %s, in a format that is not read; load it with its library, and write its "
            "arrays with safetensors.numpy.save_file",
            path, kind);
    return kind != NULL;
}

/* A directory that is empty, or has a part of one checkpoint only. */
static bool find_missing(const struct listing *listing, const char *path, struct phema_error *err)
{
    const char *unfinished = phema_unfinished_directory(path);
    if (unfinished)
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s", path, unfinished);
    else if (!listing->candidates.n)
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: is an empty directory", path);
    return unfinished || !listing->candidates.n;
}

/* ---- Folders with snapshots ---- */

#define MOST_FOLDERS 64
#define MOST_SHOWN   4

struct folder {
    const char *path; /* as the command would name it, ... */
    const char *name; /* ... and below SNAPSHOTS: "version_0/checkpoints" */
    size_t n;         /* snapshots, more than one */
};

struct folders {
    struct folder items[MOST_FOLDERS];
    size_t n;
};

/* Whether one of the files shows that they are states of an optimizer. */
static bool are_states(const struct listing *listing)
{
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_error ignored = {0};
    size_t i = listing->candidates.n;
    while (i-- > 0 && listing->candidates.items[i].is_left_out)
        continue;
    bool is_open =
        i < listing->candidates.n &&
        !phema_checkpoint_open(&checkpoint, listing->candidates.items[i].path, NULL, &ignored);
    bool are_some = is_open && !twin_has_parameters(checkpoint);
    phema_checkpoint_close(checkpoint);
    return are_some;
}

/* Folders below a listing that are series; others are looked into. The trainer is not named, since
 * what the files hold decides it. */
static void find_below(struct folders *out, const struct listing *listing, unsigned n_levels,
                       size_t root_size, struct phema_arena *memory)
{
    for (size_t i = 0; i < listing->candidates.n && (n_levels || i < MOST_PROBED); i++) {
        const struct candidate *entry = &listing->candidates.items[i];
        struct listing below;
        if (out->n == MOST_FOLDERS || !phema_path_is_directory(entry->path))
            continue;
        bool is_open = open_listing(&below, entry->path);
        const char *path = phema_arena_copy(memory, entry->path, strlen(entry->path));
        if (is_open && below.n > 1 && path && !are_states(&below))
            out->items[out->n++] = (struct folder){path, path + root_size, below.n};
        else if (is_open && below.n == 0 && n_levels)
            find_below(out, &below, n_levels - 1, root_size, memory);
        close_listing(&below);
    }
}

/* Whether a number stands in a name, and not within another: "0.998" of "ema_0.998". */
static bool has_number(const char *name, const char *number, size_t size)
{
    for (const char *at = name; (at = memmem(at, strlen(at), number, size)); at++) {
        bool begins = at == name || !(isdigit((unsigned char)at[-1]) || at[-1] == '.');
        if (begins && !isdigit((unsigned char)at[size]) &&
            !(at[size] == '.' && isdigit((unsigned char)at[size + 1])))
            return true;
    }
    return false;
}

/* Whether a SPEC has a number that a name has: "ema:decay=0.998". */
static bool shares_number(const char *spec, const char *name)
{
    for (size_t size; *spec; spec += size) {
        bool is_number = isdigit((unsigned char)*spec);
        size = is_number ? strspn(spec, "0123456789.") : 1;
        if (is_number && has_number(name, spec, size))
            return true;
    }
    return false;
}

static bool says_raw(const char *name)
{
    for (const char *at = name; (at = strcasestr(at, "raw")); at++)
        if ((at == name || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[3]))
            return true;
    return false;
}

/* The number of Lightning's "version_3/checkpoints"; -1: it has none. */
static long version_of(const char *name)
{
    static const char word[] = "version_";
    const char *at = strstr(name, word);
    size_t digits = at ? strspn(at + sizeof(word) - 1, "0123456789") : 0;
    return digits && digits < 9 ? strtol(at + sizeof(word) - 1, NULL, 10) : -1;
}

enum fit { FIT_NUMBER, FIT_RAW, FIT_NO_AVERAGE, FIT_AVERAGE, N_FITS };

/* Whether the name of a folder fits the profile that was asked for. */
static bool fits(const struct phema_series_options *options, const char *name, enum fit fit)
{
    const char *spec = options->n_input_profiles == 1 ? options->input_profiles[0] : "";
    bool is_raw = strcmp(spec, "raw") == 0;
    bool is_average = says_average(phema_span_of(name));
    char width[32] = "";
    if (options->n_input_sigmas == 1)
        (void)snprintf(width, sizeof(width), "%g", options->input_sigmas[0]);
    if (fit == FIT_NUMBER)
        return shares_number(*width ? width : spec, name);
    if (fit == FIT_AVERAGE) /* not one of another decay */
        return (*width || (*spec && !is_raw)) && is_average && !strpbrk(name, "0123456789");
    return is_raw && (fit == FIT_RAW ? says_raw(name) : !is_average);
}

/* The only one that is there or that the question means, or the newest version; NULL: none.
 *   is_newest  out: of versions */
static const struct folder *choose_folder(bool *is_newest, const struct folders *folders,
                                          const struct phema_series_options *options)
{
    const struct folder *newest = &folders->items[0];
    *is_newest = false;
    if (folders->n == 1)
        return newest;
    for (unsigned fit = 0; fit < N_FITS && !options->needs_no_profiles; fit++) {
        const struct folder *only = NULL;
        size_t n = 0;
        for (size_t i = 0; i < folders->n; i++)
            if (fits(options, folders->items[i].name, fit) && n++ == 0)
                only = &folders->items[i];
        if (n && (n == 1 || fit == FIT_RAW)) /* several raw ones: neither is meant */
            return n == 1 ? only : NULL;
    }
    *is_newest = true;
    for (size_t i = 0; i < folders->n; i++) {
        long version = version_of(folders->items[i].name);
        *is_newest = *is_newest && version >= 0;
        newest = version > version_of(newest->name) ? &folders->items[i] : newest;
    }
    return *is_newest ? newest : NULL;
}

/* "its folder run/snapshots/ holds 8", "its folders a/ (6) and b/ (8) hold some" */
static bool tell_folders(const struct folders *folders, const struct phema_series_options *options,
                         struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer shown;
    bool is_newest = false;
    const struct folder *first = &folders->items[0];
    if (!folders->n)
        return false;
    const struct folder *chosen = choose_folder(&is_newest, folders, options);
    size_t n_shown = folders->n <= MOST_SHOWN + 1 ? folders->n : MOST_SHOWN;
    size_t n_others = folders->n - n_shown;
    for (size_t i = 0; i < n_shown; i++)
        phema_strbuf_printf(&text, "%s%s/ (%zu)",
                            i == 0                          ? ""
                            : i + 1 == n_shown && !n_others ? " and "
                                                            : ", ",
                            phema_name_show(&shown, folders->items[i].name), folders->items[i].n);
    if (n_others)
        phema_strbuf_printf(&text, " and %zu others", n_others);
    if (is_newest && chosen)
        phema_strbuf_printf(&text, "; the newest is %s/", phema_name_show(&shown, chosen->name));
    if (folders->n == 1)
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots here; its folder %s/ holds %zu",
                         options->snapshots, phema_name_show(&shown, first->name), first->n);
    else
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots here, but in its folders %s",
                         options->snapshots, text.data && !text.is_failed ? text.data : "");
    if (chosen)
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_SNAPSHOTS, chosen->path);
    phema_strbuf_clear(&text);
    return true;
}

/* ---- Folders above ---- */

/* The folder of a file or a folder. */
static void write_parent(struct phema_strbuf *out, const char *path)
{
    const char *slash = memrchr(path, '/', phema_path_trimmed_size(path));
    size_t size = slash == path ? 1 : slash ? (size_t)(slash - path) : strlen(".");
    phema_strbuf_append(out, slash ? path : ".", size);
}

/* The nearest folder above that holds several snapshots, one or two levels up. */
static bool find_series_above(struct phema_strbuf *out, const char *path)
{
    enum { MOST_LEVELS = 2 };
    bool is_found = false;
    for (int level = 0; level < MOST_LEVELS && !is_found; level++) {
        struct phema_strbuf parent = {0};
        struct listing above;
        write_parent(&parent, level ? out->data : path);
        phema_strbuf_clear(out);
        *out = parent;
        if (parent.is_failed)
            return false;
        is_found = open_listing(&above, parent.data) && above.n > 1;
        close_listing(&above);
    }
    return is_found;
}

bool phema_file_lists_paths(const char *path)
{
    char first[4096];
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode); /* a pipe would wait */
    FILE *file = is_file ? fopen(path, "re") : NULL;
    bool is_read = file && fgets(first, sizeof(first), file);
    if (file)
        (void)fclose(file);
    if (!is_read)
        return false;
    first[strcspn(first, "\r\n")] = '\0';
    return *first && phema_path_exists(first);
}

void suggest_series_of_file(const char *path, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    enum phema_status status = PHEMA_ERR_INPUTS;
    if (phema_ends_with(path, ".txt") || phema_ends_with(path, ".list") ||
        phema_file_lists_paths(path))
        phema_strbuf_printf(&text, "@%s", path);
    else if (!find_series_above(&text, path)) {
        phema_strbuf_clear(&text);
        if (strchr(path, '/'))
            write_parent(&text, path);
    }
    if (text.size && !text.is_failed)
        (void)phema_suggest(err, status, PHEMA_SET_SNAPSHOTS, text.data);
    else if (phema_format_from_path(NULL, path, 0))
        (void)phema_suggest(err, status, PHEMA_SET_INSPECTED, path);
    phema_strbuf_clear(&text);
}

/* A folder of a series of folders, "run" of "run/checkpoint-512/". */
static bool find_above(const char *path, struct phema_error *err)
{
    struct phema_strbuf parent = {0};
    if (!phema_directory_has_model(path, true) && !phema_directory_is_checkpoint(path, true))
        return false;
    (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: is one checkpoint; give the folder above it",
                     path);
    if (find_series_above(&parent, path))
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_SNAPSHOTS, parent.data);
    phema_strbuf_clear(&parent);
    return true;
}

/* "step_(?<time>[0-9]+)" of "step_512.safetensors", where the names of all files begin so. */
static bool guess_pattern(struct phema_strbuf *out, const struct listing *listing, size_t *n_files)
{
    const char *name = NULL;
    size_t first = 0, at = 0;
    bool is_alike = true;
    *n_files = 0;
    for (size_t i = 0; i < listing->candidates.n; i++) {
        const char *base = listing->candidates.items[i].base;
        if (!phema_format_from_path(NULL, base, PHEMA_NAMES_SNAPSHOT))
            continue;
        ++*n_files;
        size_t end = strcspn(base, "."); /* of the last digits in the name */
        while (end > 0 && !isdigit((unsigned char)base[end - 1]))
            end--;
        for (at = end; at > 0 && isdigit((unsigned char)base[at - 1]);)
            at--;
        bool goes_on = isalpha((unsigned char)base[end]) || /* a unit, or a decimal fraction */
                       (base[end] == '.' && isdigit((unsigned char)base[end + 1]));
        goes_on |= at > 1 && strchr("eE", base[at - 1]) && /* the exponent of 1e5 */
                   isdigit((unsigned char)base[at - 2]);
        is_alike &= at < end && !goes_on && name_word_rank(base, at) >= 0 &&
                    /* no metric */ strcspn(base, "\\^$|()[]{}*+?'") == strlen(base);
        if (!name) {
            name = base;
            first = at;
        }
        is_alike &= at == first && memcmp(name, base, first) == 0;
    }
    if (!name || !is_alike)
        return false;
    phema_strbuf_append(out, name, first);
    phema_strbuf_puts(out, "(?<time>[0-9]+)");
    return !out->is_failed;
}

/* A date tells which snapshot is newer, and not how many steps. */
static bool find_dates(const struct listing *listing, const char *path, struct phema_error *err)
{
    struct phema_name_buffer shown;
    const char *dated = name_times_find_date(&listing->candidates);
    if (dated)
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "%s: the names are dates, such as '%s', which tell the order of the "
                         "snapshots but not their steps, and no counter inside has these; a "
                         "manifest gives them",
                         path, phema_name_show(&shown, dated));
    return dated != NULL;
}

static bool find_pattern(const struct listing *listing, const struct phema_series_options *options,
                         struct phema_error *err)
{
    const char *path = options->snapshots;
    struct phema_strbuf pattern = {0};
    size_t n_files = 0;
    bool is_guessed = guess_pattern(&pattern, listing, &n_files);
    if (n_files)
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "%s: %zu checkpoint%s, but no time is known of %s; %s tells the time in a "
                         "name, %s or %s the average",
                         path, n_files, n_files == 1 ? "" : "s", n_files == 1 ? "it" : "them",
                         phema_setting_name(PHEMA_SET_NAME_REGEX),
                         phema_setting_name(PHEMA_SET_INPUT_PROFILE),
                         phema_setting_name(PHEMA_SET_INPUT_SIGMA));
    if (is_guessed) {
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_NAME_REGEX, pattern.data);
        if (!options->needs_no_profiles && !options->n_input_profiles && !options->n_input_sigmas)
            (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_INPUT_PROFILE, "raw");
    }
    phema_strbuf_clear(&pattern);
    return n_files > 0;
}

PHEMA_FALLIBLE fail_no_snapshots(const struct phema_series_options *options,
                                 const struct candidate_list *candidates, struct phema_error *err)
{
    const char *path = options->snapshots;
    struct listing listing;
    if (candidates->n_outputs) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "%s: holds %zu average%s made by posthoc-ema, no snapshots", path,
                         candidates->n_outputs, candidates->n_outputs == 1 ? "" : "s");
        return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_INSPECTED, candidates->output);
    }
    bool is_told = false;
    if (phema_path_is_directory(path) && !options->name_regex) {
        is_told = open_listing(&listing, path) &&
                  (find_missing(&listing, path, err) || find_foreign(&listing, path, err) ||
                   find_above(path, err));
        struct folders folders = {.n = 0};
        if (!is_told)
            find_below(&folders, &listing, 1, strlen(path) + !phema_ends_with(path, "/"),
                       &listing.memory);
        is_told = is_told || tell_folders(&folders, options, err) ||
                  find_dates(&listing, path, err) || find_pattern(&listing, options, err);
        close_listing(&listing);
    }
    if (is_told)
        return PHEMA_ERR_INPUTS;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: no snapshots found; names like 'snapshot-0001000-0.050.safetensors', "
                      "'network-snapshot-0001000-0.050.pkl' or '0.1000.pt' are known, others need "
                      "%s or a manifest",
                      path, phema_setting_name(PHEMA_SET_NAME_REGEX));
}
