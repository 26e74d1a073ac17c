// SPDX-License-Identifier: Apache-2.0
/* name_times.c - the time in names that no layout knows. It is the field (name_fields.h) that all names
 * have and that is another number in each. Words beside the digits only choose among several such
 * fields. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "name_fields.h"

#define MOST_NAMES 2048u /* all pairs are compared */

/* A number with a unit as a regular expression. The unit ends the word, or stands before the word of
 * what is counted. */
#define WITH_UNIT "[0-9]+(?:\\.[0-9]+)?(?:[kKmMbBGT](?=[^A-Za-z]|$|tok|step|it))?"

/* A field of the first name, and what the others have in its place. */
struct clock_field {
    const struct field *field;
    unsigned nth;  /* of the fields with this text in a name */
    int rank;      /* by its word; lower is better, negative never */
    uint64_t last; /* the largest number */
};

struct numbered {
    uint64_t number;
    const char *label;
};

/* Names are of one kind where they differ in digits alone. */
static int compare_kinds(const char *a, const char *b)
{
    for (;;) {
        while (isdigit((unsigned char)*a))
            a++;
        while (isdigit((unsigned char)*b))
            b++;
        if (*a != *b || !*a)
            return (unsigned char)*a - (unsigned char)*b;
        a++;
        b++;
    }
}

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return compare_kinds(left->label, right->label);
}

/* Whether the names that have the field, n_having of them, have another number in each; two kinds
 * of names have the same ones.
 *   numbers  [n], filled here */
static bool is_time(struct clock_field *clock, size_t *n_having, const struct numbered_name *names,
                    size_t n, struct numbered *numbers)
{
    bool is_count = clock->rank >= 0;
    *n_having = 0;
    for (size_t i = 0; i < n && is_count; i++) {
        const struct field *field = name_find_field(&names[i], clock->field, clock->nth);
        if (!field)
            continue;
        is_count = field->is_count;
        numbers[(*n_having)++] = (struct numbered){field->number, names[i].label};
    }
    if (!is_count || *n_having == 0)
        return false;
    qsort(numbers, *n_having, sizeof(*numbers), compare_numbered);
    clock->last = numbers[*n_having - 1].number;
    for (size_t i = 1; i < *n_having; i++)
        if (compare_numbered(&numbers[i], &numbers[i - 1]) == 0)
            return false;
    return *n_having > 1 || clock->rank != 1; /* one name alone needs a word */
}

/* Whether both put the names into one order. */
static bool are_in_step(const struct clock_field *a, const struct clock_field *b,
                        const struct numbered_name *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const struct field *ai = name_find_field(&names[i], a->field, a->nth);
            const struct field *aj = name_find_field(&names[j], a->field, a->nth);
            const struct field *bi = name_find_field(&names[i], b->field, b->nth);
            const struct field *bj = name_find_field(&names[j], b->field, b->nth);
            if (ai && aj && bi && bj && (ai->number < aj->number) != (bi->number < bj->number))
                return false;
        }
    return true;
}

/* Whether one of two fields is so many times the other in all names: "50.1" and "100.2" are no fractions. */
static bool are_multiples(const struct clock_field clocks[2], const struct numbered_name *names,
                          size_t n)
{
    double first = (double)clocks[0].field->number, second = (double)clocks[1].field->number;
    bool are_equal = n > 2 && clocks[0].last != clocks[1].last;
    for (size_t i = 0; i < n && are_equal; i++) {
        const struct field *a = name_find_field(&names[i], clocks[0].field, clocks[0].nth);
        const struct field *b = name_find_field(&names[i], clocks[1].field, clocks[1].nth);
        are_equal = a && b && (double)a->number * second == (double)b->number * first;
    }
    return are_equal;
}

/* Characters that mean something in a regular expression are quoted. */
void name_quote(struct phema_strbuf *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr("\\^$.|()[]{}*+?", text[i]))
            phema_strbuf_puts(out, "\\");
        phema_strbuf_append(out, &text[i], 1);
    }
}

/* "[0-9]+-[0-9]+-[0-9]+" of a date; the group is its first number, or nothing with only_first behind it. */
static void write_date(struct phema_strbuf *out, const struct field *field, bool only_first)
{
    const char *end = field->date + field->date_size;
    for (const char *at = field->date; at < end;) {
        size_t n_digits = strspn(at, "0123456789");
        if (isalpha((unsigned char)*at))
            phema_strbuf_puts(out, "[A-Za-z]");
        else if (n_digits == 0)
            name_quote(out, at, 1);
        else
            phema_strbuf_puts(out, only_first ? "(?<time>[0-9]+)" : "[0-9]+");
        if (n_digits && only_first)
            return;
        at += n_digits ? n_digits : 1;
    }
}

/* "step=(?<time>[0-9]+)", with the fields before it where the text before it is no word. */
static void write_pattern(struct phema_strbuf *out, const struct numbered_name *name,
                          const struct field *time, bool has_time_unit)
{
    const struct field *first = time;
    while (first > name->fields && strcspn(first->before, "0123456789") == first->before_size &&
           !memchr(first->before, '=', first->before_size)) {
        size_t n_letters = 0;
        for (size_t i = 0; i < first->before_size; i++)
            n_letters += isalpha((unsigned char)first->before[i]) != 0;
        if (n_letters)
            break;
        first--;
    }
    if (first == name->fields)
        phema_strbuf_puts(out, "^");
    for (const struct field *field = first; field <= time; field++) {
        name_quote(out, field->before, field->before_size);
        bool with_unit = field == time ? has_time_unit : field->has_unit;
        if (field->date)
            write_date(out, field, field == time);
        else if (field->is_hash)
            phema_strbuf_puts(out, "[0-9a-fA-F]+");
        else
            phema_strbuf_printf(out, field == time ? "(?<time>%s)" : "%s",
                                with_unit ? WITH_UNIT : "[0-9]+");
    }
}

/* The best field, NULL where none is or where two are and disagree. */
static const struct clock_field *choose(struct clock_field *clocks, size_t n_clocks,
                                        const struct numbered_name *names, size_t n)
{
    const struct clock_field *best = NULL;
    for (size_t c = 0; c < n_clocks; c++)
        if (!best || clocks[c].rank < best->rank ||
            (clocks[c].rank == best->rank && clocks[c].last > best->last))
            best = &clocks[c];
    for (size_t c = 0; c < n_clocks; c++)
        if (clocks[c].rank == best->rank && !are_in_step(best, &clocks[c], names, n))
            return NULL;
    return best;
}

/* A folder with files of one kind is a series of its own, or parts of a checkpoint. */
static bool is_checkpoint_folder(const char *path, struct phema_arena *arena)
{
    const char *const *paths = NULL;
    size_t n = 0;
    bool is_one = phema_folder_list(&paths, &n, arena, path) && n > 0;
    for (size_t i = 1; i < n && is_one; i++)
        is_one = compare_kinds(paths[i - 1], paths[i]) != 0;
    return is_one;
}

static bool may_be_checkpoint(const struct candidate_list *candidates,
                              const struct candidate *candidate, struct phema_arena *arena)
{
    return candidate_is_checkpoint(candidates, candidate) ||
           phema_directory_has_model(candidate->path, true) ||
           is_checkpoint_folder(candidate->path, arena);
}

static const struct field *find_date(const struct numbered_name *name)
{
    for (size_t f = 0; f < name->n_fields; f++)
        if (name->fields[f].date)
            return &name->fields[f];
    return NULL;
}

/* Whether hours or minutes behind different dates are read in all names. In "20240530-1000" and
 * "20240530-3000" of one run they count something else. */
static bool have_short_times(const struct numbered_name *names, size_t n)
{
    const struct field *first = NULL;
    bool differ = false;
    for (size_t i = 0; i < n; i++) {
        struct numbered_name longer;
        const struct field *date = find_date(&names[i]);
        if (!date)
            continue;
        name_cut(&longer, names[i].base, names[i].label, READ_DATES | READ_SHORT_TIMES);
        if (find_date(&longer)->date_size == date->date_size)
            return false;
        first = first ? first : date;
        differ = differ || date->number != first->number;
    }
    return differ;
}

/* Whether most names differ from those beside them in more than digits, as with hashes. "e1b500" and "e2b1000"
 * do not. */
static bool have_hashes(const struct numbered_name *names, size_t n)
{
    size_t n_alike = 0;
    for (size_t i = 1; i < n; i++)
        n_alike += compare_kinds(names[i - 1].base, names[i].base) == 0;
    return 2 * n_alike < n;
}

/* Numbers of a few names only are no dates. */
static unsigned find_reading(const struct numbered_name *names, size_t n)
{
    size_t n_dated = 0;
    for (size_t i = 0; i < n; i++)
        n_dated += find_date(&names[i]) != NULL;
    unsigned dates = 2 * n_dated > n ? READ_DATES : 0;
    return dates && have_short_times(names, n) ? dates | READ_SHORT_TIMES : dates;
}

/*   names  [candidates->n], filled here */
static size_t list_names(struct numbered_name *names, const struct candidate_list *candidates,
                         bool takes_fractions)
{
    struct phema_arena scratch = {0};
    size_t n = 0;
    for (size_t i = 0; i < candidates->n && n < MOST_NAMES; i++) {
        if (candidates->items[i].path && !candidates->items[i].is_excluded &&
            may_be_checkpoint(candidates, &candidates->items[i], &scratch))
            name_cut(&names[n++], candidates->items[i].base, candidates->items[i].label,
                     READ_DATES);
        phema_arena_clear(&scratch);
    }
    unsigned reading = find_reading(names, n) | (takes_fractions ? READ_FRACTIONS : 0) |
                       (have_hashes(names, n) ? READ_HASHES : 0);
    for (size_t i = 0; i < n && reading != READ_DATES; i++)
        name_cut(&names[i], names[i].base, names[i].label, reading);
    return n;
}

/* The field of names of another kind that have the numbers of a field: "ema_0.98_50" of "model50". */
struct other_kind {
    const struct numbered_name *name;
    struct clock_field clock;
};

#define MOST_OTHERS 3

/* Whether a field of other names has each number of the best field once.
 *   numbers  [2 n] scratch */
static bool has_same_numbers(struct clock_field *clock, const struct clock_field *best,
                             const struct numbered_name *names, size_t n, struct numbered *numbers)
{
    size_t n_having = 0, n_best = 0;
    struct clock_field same = *best;
    struct numbered *of_best = numbers + n;
    bool is_same = is_time(clock, &n_having, names, n, numbers) &&
                   is_time(&same, &n_best, names, n, of_best) && n_having == n_best;
    for (size_t k = 0; k < n_best && is_same; k++)
        is_same = numbers[k].number == of_best[k].number;
    return is_same;
}

static bool is_covered(const struct numbered_name *name, const struct clock_field *best,
                       const struct other_kind *others, size_t n_others)
{
    bool is_one = name_find_field(name, best->field, best->nth) != NULL;
    for (size_t k = 0; k < n_others && !is_one; k++)
        is_one = name_find_field(name, others[k].clock.field, others[k].clock.nth) != NULL;
    return is_one;
}

/* The kinds of names without the best field, where each has the same numbers; 0: some have not. */
static size_t find_other_kinds(struct other_kind others[MOST_OTHERS],
                               const struct clock_field *best, const struct numbered_name *names,
                               size_t n, struct numbered *numbers)
{
    size_t n_others = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_found = is_covered(&names[i], best, others, n_others);
        for (size_t f = 0; f < names[i].n_fields && !is_found && n_others < MOST_OTHERS; f++) {
            struct clock_field clock = {.field = &names[i].fields[f]};
            for (size_t g = 0; g < f; g++)
                clock.nth += field_has_text(&names[i].fields[g], clock.field);
            clock.rank = field_rank(clock.field);
            is_found = has_same_numbers(&clock, best, names, n, numbers);
            if (is_found)
                others[n_others++] = (struct other_kind){&names[i], clock};
        }
        if (!is_found)
            return 0;
    }
    return n_others;
}

/* Whether a name of this field's text has a unit behind its number. */
static bool has_unit(const struct field *like, unsigned nth, const struct numbered_name *names,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct field *field = name_find_field(&names[i], like, nth);
        if (field && field->has_unit)
            return true;
    }
    return false;
}

static enum phema_status keep_pattern(const char **pattern, struct phema_arena *arena,
                                      struct phema_strbuf *text, struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(text, err);
    if (!status)
        *pattern = phema_arena_copy(arena, text->data, text->size);
    phema_strbuf_clear(text);
    return status || *pattern ? status : phema_fail_memory(err);
}

static enum phema_status find_times(const char **pattern, bool *counts_steps,
                                    const struct candidate_list *candidates, bool takes_fractions,
                                    struct phema_error *err)
{
    struct phema_arena *arena = candidates->arena;
    struct numbered_name *names = phema_arena_array(arena, candidates->n + 1, sizeof(*names));
    struct numbered *numbers = phema_arena_array(arena, 2 * candidates->n + 1, sizeof(*numbers));
    struct clock_field clocks[MOST_FIELDS];
    *pattern = NULL;
    if (!names || !numbers)
        return phema_fail_memory(err);
    size_t n = list_names(names, candidates, takes_fractions), most = 0, n_clocks = 0;
    const struct numbered_name *chosen = NULL;
    for (size_t i = 0; i < n; i++) { /* the fields that most names have */
        size_t n_found = 0, n_all = 0;
        struct clock_field found[MOST_FIELDS];
        for (size_t f = 0; f < names[i].n_fields; f++) {
            struct clock_field clock = {.field = &names[i].fields[f]};
            size_t n_having = 0;
            for (size_t g = 0; g < f; g++)
                clock.nth += field_has_text(&names[i].fields[g], clock.field);
            clock.rank = field_rank(clock.field);
            if (!is_time(&clock, &n_having, names, n, numbers) || n_having < n_all)
                continue;
            n_found = n_having > n_all ? 0 : n_found;
            n_all = n_having;
            found[n_found++] = clock;
        }
        if (n_all > most) {
            most = n_all;
            n_clocks = n_found;
            memcpy(clocks, found, n_found * sizeof(*found));
            chosen = &names[i];
        }
        if (most >= n - i) /* no other text can be in more names */
            break;
    }
    const struct clock_field *best = n_clocks ? choose(clocks, n_clocks, names, n) : NULL;
    if (takes_fractions && (n_clocks != 2 || !are_multiples(clocks, names, n)))
        return PHEMA_OK;
    struct other_kind others[MOST_OTHERS];
    bool is_part = n > 1 && 2 * most <= n;
    size_t n_others =
        best && is_part && most > 1 ? find_other_kinds(others, best, names, n, numbers) : 0;
    if (!best || (is_part && !n_others) || (n_others > 1 && candidates->may_be_parts))
        return PHEMA_OK;
    const char *number = best->field->before + best->field->before_size;
    *counts_steps = best->rank == 0 && !name_unit(chosen->base, (size_t)(number - chosen->base));
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, n_others ? "(?|" : "");
    write_pattern(&text, chosen, best->field, has_unit(best->field, best->nth, names, n));
    for (size_t k = 0; k < n_others; k++) {
        const struct clock_field *clock = &others[k].clock;
        phema_strbuf_puts(&text, "|");
        write_pattern(&text, others[k].name, clock->field,
                      has_unit(clock->field, clock->nth, names, n));
    }
    phema_strbuf_puts(&text, n_others ? ")" : "");
    return keep_pattern(pattern, arena, &text, err);
}

/* Whether a field is a count of all names with numbers that is not the same in each.
 *   is_part  out: it differs, but is the number of a run or the like */
static bool differs(bool *is_part, const struct clock_field *clock,
                    const struct numbered_name *names, size_t n)
{
    bool is_other = false, is_count = true;
    for (size_t i = 0; i < n; i++) {
        const struct field *field = name_find_field(&names[i], clock->field, clock->nth);
        is_count = is_count && field && field->is_count;
        is_other = is_other || !field || field->number != clock->field->number;
    }
    *is_part = is_other && clock->rank < 0 && !clock->field->date;
    return is_other && is_count;
}

/* The names with numbers, if they are alike but for these and for dates; n = 0: they are not. */
static size_t keep_numbered(struct numbered_name *names, size_t n_names)
{
    size_t n = 0;
    for (size_t i = 0; i < n_names; i++)
        if (names[i].n_fields)
            names[n++] = names[i];
    for (size_t i = 1; i < n; i++)
        if (!(find_date(&names[i]) && find_date(names)) &&
            compare_kinds(names[i].base, names[0].base) != 0)
            return 0;
    return n;
}

/* The nth of the fields of these names that are counts and differ; NULL: there is none.
 *   are_parts  of the fields behind words such as "run" alone */
static const struct field *find_differing(bool *has_parts, const struct numbered_name *names,
                                          size_t n, unsigned nth, bool are_parts)
{
    const struct field *found = NULL;
    *has_parts = false;
    for (size_t f = 0; n > 1 && f < names[0].n_fields; f++) {
        struct clock_field clock = {.field = &names[0].fields[f]};
        bool is_part = false;
        for (size_t g = 0; g < f; g++)
            clock.nth += field_has_text(&names[0].fields[g], clock.field);
        clock.rank = field_rank(clock.field);
        bool is_one = differs(&is_part, &clock, names, n);
        *has_parts = *has_parts || is_part;
        if (is_one && is_part == are_parts && nth-- == 0)
            found = clock.field;
    }
    return found;
}

enum phema_status name_times_find_vague(const char **pattern, enum vague_number *kind, unsigned nth,
                                        const struct candidate_list *candidates,
                                        struct phema_error *err)
{
    struct numbered_name *names =
        phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*names));
    *pattern = NULL;
    if (!names)
        return phema_fail_memory(err);
    size_t n = keep_numbered(names, list_names(names, candidates, false));
    bool has_parts = false;
    const struct field *found = find_differing(&has_parts, names, n, nth, false);
    if (has_parts)
        found = find_differing(&has_parts, names, n, nth, true);
    if (!found)
        return PHEMA_OK;
    *kind = found->date ? VAGUE_DATE : has_parts ? VAGUE_PART : VAGUE_COUNT;
    struct phema_strbuf text = {0};
    write_pattern(&text, &names[0], found, false);
    return keep_pattern(pattern, candidates->arena, &text, err);
}

const char *name_times_find_date(const struct candidate_list *candidates)
{
    struct numbered_name *names =
        phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*names));
    size_t n = names ? list_names(names, candidates, false) : 0;
    const char *dated = NULL;
    for (size_t i = 0; i < n; i++)
        dated = find_date(&names[i]) ? names[i].label : dated;
    return dated;
}

enum phema_status name_times_find(const char **pattern, bool *counts_steps,
                                  struct candidate_list *candidates, struct phema_error *err)
{
    enum phema_status status = find_times(pattern, counts_steps, candidates, false, err);
    if (!status && !*pattern)
        status = find_times(pattern, counts_steps, candidates, true, err);
    if (status || *pattern)
        return status;
    candidates->by_content = true;
    status = find_times(pattern, counts_steps, candidates, false, err);
    candidates->by_content = !status && *pattern;
    return status;
}
