// SPDX-License-Identifier: Apache-2.0
/* counters.c - steps that files count inside, for series whose names no layout knows. Such a counter
 * is the time, whatever the numbers in the names count; it also tells the time of a file without a
 * number ("last.ckpt"). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "phema/number.h"
#include "phema/sort.h"
#include "sets.h"

#define MOST_COUNTERS 24 /* in a file */
#define MOST_EXTRA    8  /* files without a number */
#define MOST_DOTS     3

/* The last part of a counter's name, better ones first; any other name with a word of parts comes after
 * them: "train_step", "n_updates". */
static const char *const words[] = {
    "global_step",   "step",
    "steps",         "iter",
    "iteration",     "iterations",
    "num_updates",   "updates",
    "ss_steps",      "batch_idx_train",
    "iter_num",      "optimization_step",
    "training_step", "n_averaged",
};

static const char *const parts[] = {"step",  "steps",      "iter",   "iters",  "iteration",
                                    "niter", "iterations", "update", "updates"};

struct counter {
    const char *name; /* of a value, a metadatum or a tensor of one element */
    size_t rank;      /* in words */
    unsigned dots;
};

/* What one file counts. */
struct counted {
    struct candidate *candidate;
    double values[MOST_COUNTERS]; /* NaN: the file has none */
    double epoch, batches;        /* likewise */
};

/* Of a scheduler, an early stop or a loader, which count otherwise. */
static bool is_of_other(const char *name, size_t size)
{
    static const char *const others[] = {"sched", "early", "stop", "load", "sampler", "epoch"};
    const char *last = memrchr(name, '.', size);
    size_t parent = last ? (size_t)(last - name) : 0;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (memmem(name, parent, others[i], strlen(others[i])))
            return true;
    return false;
}

/* Whether one of the words of a name, as "train_steps_done" has three, is of a counter. */
static bool has_part(const char *name, size_t size)
{
    for (size_t at = 0, end; at < size; at = end + 1) {
        for (end = at; end < size && name[end] != '_' && name[end] != '-' && name[end] != ' ';)
            end++;
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
            if (strlen(parts[i]) == end - at && strncasecmp(name + at, parts[i], end - at) == 0)
                return true;
    }
    return false;
}

/* Of what is no step, for numbers whose names do not say what they count. */
static bool counts_other(const char *name, size_t size)
{
    static const char *const others[] = {"sample", "token", "im",     "seen", "time",
                                         "sec",    "byte",  "exampl", "seed", "best"};
    for (size_t at = 0; at < size; at++)
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
            if (size - at >= strlen(others[i]) &&
                strncasecmp(name + at, others[i], strlen(others[i])) == 0)
                return true;
    return false;
}

#define NAMELESS (ARRAY_LEN(words) + 1) /* the rank of a number without a word for steps */

static bool rank_of(size_t *rank, unsigned *dots, const char *name, size_t size)
{
    size_t begin = size;
    while (begin > 0 && name[begin - 1] != '.')
        begin--;
    *dots = 0;
    for (size_t i = 0; i < size; i++)
        *dots += name[i] == '.';
    for (*rank = 0; *rank < ARRAY_LEN(words); ++*rank)
        if (phema_bytes_are(name + begin, size - begin, words[*rank]))
            break;
    if (*rank == ARRAY_LEN(words) && !has_part(name + begin, size - begin))
        *rank = counts_other(name, size) ? SIZE_MAX : NAMELESS;
    return *dots <= MOST_DOTS && !is_optimizer_state(name, size) && !is_of_other(name, size);
}

struct counter_list {
    struct counter items[MOST_COUNTERS];
    size_t n;
    const char *epochs, *batches; /* what counts these; NULL: nothing does */
};

static bool add_counter(struct counter_list *list, struct phema_arena *arena, const char *name,
                        size_t size, bool is_nameless)
{
    size_t rank;
    unsigned dots;
    if (!rank_of(&rank, &dots, name, size) || list->n == MOST_COUNTERS ||
        (is_nameless ? rank != NAMELESS : rank >= NAMELESS))
        return true;
    for (size_t i = 0; i < list->n; i++)
        if (phema_bytes_are(name, size, list->items[i].name))
            return true;
    const char *copy = phema_arena_copy(arena, name, size);
    list->items[list->n++] = (struct counter){copy, rank, dots};
    return copy != NULL;
}

static bool list_counters(struct counter_list *list, struct phema_arena *arena,
                          const struct phema_checkpoint *checkpoint, bool takes_nameless)
{
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    const struct phema_metadata *metadata = phema_checkpoint_metadata(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    bool is_kept = true;
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint); i++)
        is_kept = is_kept && add_counter(list, arena, values[i].name, values[i].name_size, false);
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++)
        is_kept = is_kept && add_counter(list, arena, metadata[i].key, metadata[i].key_size, false);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (tensors[i].n_elems == 1)
            is_kept =
                is_kept && add_counter(list, arena, tensors[i].name, tensors[i].name_size, false);
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint) && takes_nameless; i++)
        if (values[i].number > 0 && floor(values[i].number) == values[i].number)
            is_kept =
                is_kept && add_counter(list, arena, values[i].name, values[i].name_size, true);
    return is_kept;
}

/* "epoch", or below other keys as "meta.epoch"; not that of a scheduler, which may count steps. */
static bool find_epochs(struct counter_list *list, struct phema_arena *arena,
                        const struct phema_checkpoint *checkpoint)
{
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint) && !list->epochs; i++) {
        size_t rank, size = values[i].name_size;
        unsigned dots;
        const char *name = values[i].name;
        bool is_last = size >= 5 && memcmp(name + size - 5, "epoch", 5) == 0 &&
                       (size == 5 || name[size - 6] == '.');
        if (!is_last || !rank_of(&rank, &dots, name, size))
            continue;
        list->epochs = phema_arena_copy(arena, name, size);
        if (!list->epochs)
            return false;
    }
    return true;
}

/* Finds the counter of batches that a layer or an optimizer keeps in a tensor of one element. */
static bool find_batches(struct counter_list *list, struct phema_arena *arena,
                         const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint) && !list->batches; i++) {
        const char *last = memrchr(tensors[i].name, '.', tensors[i].name_size);
        size_t size = last ? tensors[i].name_size - (size_t)(last - tensors[i].name) : 0;
        if (tensors[i].n_elems != 1 || !size ||
            !(phema_bytes_are(last, size, ".num_batches_tracked") ||
              phema_bytes_are(last, size, ".step")))
            continue;
        list->batches = phema_arena_copy(arena, tensors[i].name, tensors[i].name_size);
        if (!list->batches)
            return false;
    }
    return true;
}

static double count(const struct phema_checkpoint *checkpoint, const char *name)
{
    double value = snapshot_metadata_value(checkpoint, name);
    struct phema_error ignored = {0};
    if (isnan(value))
        value = snapshot_metadata_scalar(checkpoint, name);
    const char *text = isnan(value) ? phema_checkpoint_metadatum(checkpoint, name) : NULL;
    if (text && phema_number_parse(&value, text, &ignored))
        value = PHEMA_UNKNOWN;
    bool is_count = value >= 0 && value < 0x1p53 && floor(value) == value;
    return is_count ? value : PHEMA_UNKNOWN;
}

/* Opens a file and reads what it counts; the counters are those of the first file. */
static enum phema_status read_counters(struct counted *out, struct counter_list *list,
                                       struct candidate_list *candidates, bool takes_nameless,
                                       const struct phema_checkpoint_options *options,
                                       struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status =
        candidate_open(&checkpoint, candidates, out->candidate, options, err);
    if (status)
        return status;
    if (phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance"))
        candidates_leave_out(candidates, out->candidate, CANDIDATE_IS_OUTPUT);
    else if (list->n == 0 && !list->epochs && !list->batches &&
             (!list_counters(list, candidates->arena, checkpoint, takes_nameless) ||
              !find_epochs(list, candidates->arena, checkpoint) ||
              !find_batches(list, candidates->arena, checkpoint)))
        status = phema_fail_memory(err);
    for (size_t c = 0; c < list->n && !status; c++)
        out->values[c] = count(checkpoint, list->items[c].name);
    out->epoch = list->epochs ? count(checkpoint, list->epochs) : PHEMA_UNKNOWN;
    out->batches = list->batches ? count(checkpoint, list->batches) : PHEMA_UNKNOWN;
    phema_checkpoint_close(checkpoint);
    return status;
}

static int compare_times(const void *a, const void *b)
{
    double left = ((const struct counted *)a)->candidate->named_time;
    double right = ((const struct counted *)b)->candidate->named_time;
    return (left > right) - (left < right);
}

/* Whether the names count one by one, as those of epochs do.
 *   counted  [n] by number */
static bool are_successive(const struct counted *counted, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (counted[i].candidate->named_time != counted[i - 1].candidate->named_time + 1)
            return false;
    return n > 2;
}

/* Whether the names count epochs: the number inside that does is the same, or one off in all files. */
static bool are_epochs(const struct counted *counted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double off = counted[i].epoch - counted[i].candidate->named_time;
        double first = counted[0].epoch - counted[0].candidate->named_time;
        if (off != first || !(fabs(off) <= 1))
            return false;
    }
    return n > 1;
}

/* Whether a number is as many in each of these epochs, from the first one on. */
static bool counts_in_epochs(const struct counted *counted, size_t n, size_t c)
{
    double in_epoch = counted[1].values[c] - counted[0].values[c];
    double n_before = counted[0].values[c] - in_epoch * counted[0].candidate->named_time;
    for (size_t i = 1; i < n; i++)
        if (counted[i].values[c] - counted[i - 1].values[c] != in_epoch)
            return false;
    return in_epoch > 1 && (n_before == 0 || n_before == in_epoch);
}

/* Whether it is another number in each file, larger where the number in the name is, unless that is a
 * part of a date. */
static bool rises_alone(const struct counted *counted, size_t n, size_t c, bool are_dates)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double step = counted[i].values[c] - counted[j].values[c];
            bool is_later = counted[i].candidate->named_time > counted[j].candidate->named_time;
            if (!(counted[i].values[c] > 0) || (i != j && step == 0) ||
                (is_later && step < 0 && !are_dates))
                return false;
        }
    return true;
}

/* Whether a counter is in all files and rises with their numbers; files of one number count alike.
 *   counted  [n] by number */
static bool rises(const struct counted *counted, size_t n, size_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (isnan(counted[i].values[c]))
            return false;
        bool is_same =
            i && counted[i].candidate->named_time == counted[i - 1].candidate->named_time;
        if (i && (is_same ? counted[i].values[c] != counted[i - 1].values[c]
                          : counted[i].values[c] <= counted[i - 1].values[c]))
            return false;
    }
    bool is_before_training = counted[0].values[c] == 0 && counted[0].candidate->named_time == 0;
    return counted[0].values[c] > 0 || is_before_training;
}

static bool agrees(const struct counted *counted, size_t n, size_t c)
{
    for (size_t i = 0; i < n; i++)
        if (counted[i].values[c] != counted[i].candidate->named_time)
            return false;
    return true;
}

static enum phema_status use_counter(struct candidate_list *candidates, struct counted *counted,
                                     size_t n, const struct counter *counter, size_t c,
                                     bool are_dates, struct phema_error *err)
{
    bool differs = false;
    candidates->has_counter = true;
    for (size_t i = 0; i < n; i++)
        differs = differs || counted[i].candidate->named_time != counted[i].values[c];
    struct phema_name_buffer number, name;
    if (differs && n > 0) {
        candidates->recognised.times = "counter";
        candidates->recognised.field = counter->name;
        const char *base = phema_name_show(&name, counted[0].candidate->base);
        candidates->times_note =
            are_dates
                ? phema_arena_printf(candidates->arena,
                                     "times: '%s' inside; names such as '%s' are dates",
                                     counter->name, base)
                : phema_arena_printf(
                      candidates->arena,
                      "times: '%s' inside; the numbers in the names, such as %s in '%s', count "
                      "something else",
                      counter->name, phema_number_format(&number, counted[0].candidate->named_time),
                      base);
        if (!candidates->times_note)
            return phema_fail_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        counted[i].candidate->named_time = counted[i].values[c];
    return PHEMA_OK;
}

/* The newest file of a training follows the others after at most so many of the longest intervals. */
#define MOST_BEYOND 2

/* The latest time that a file without a number can have; names that are dates have no order. */
static enum phema_status find_latest(double *newest, double *latest, const struct counted *counted,
                                     size_t n, size_t c, struct phema_error *err)
{
    double *times = calloc(n + 1, sizeof(*times)), longest = 0;
    if (!times)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        times[i + 1] = counted[i].values[c];
    qsort(times, n + 1, sizeof(*times), phema_compare_doubles);
    for (size_t i = 1; i <= n; i++)
        longest = fmax(longest, times[i] - times[i - 1]);
    *newest = times[n];
    *latest = times[n] + MOST_BEYOND * longest;
    free(times);
    return PHEMA_OK;
}

/* Files without a number: the newest one of a training, a copy of one that has a number, or one of
 * another training, such as that which this one began from. */
static enum phema_status place_extra(struct candidate_list *candidates,
                                     const struct counted *counted, size_t n, struct counted *extra,
                                     size_t n_extra, size_t c, const char *counter,
                                     struct phema_error *err)
{
    struct candidate *last = NULL;
    struct phema_name_buffer number;
    double newest = 0, latest = 0;
    enum phema_status status = find_latest(&newest, &latest, counted, n, c, err);
    for (size_t i = 0; i < n_extra && !status; i++) {
        struct candidate *candidate = extra[i].candidate;
        double time = extra[i].values[c];
        const struct candidate *same = NULL;
        for (size_t j = 0; j < n; j++)
            if (counted[j].values[c] == time)
                same = counted[j].candidate;
        if (last && last->named_time == time)
            same = last;
        if (same) {
            candidate->reason =
                phema_arena_printf(candidates->arena, "of the time of '%s'", same->label);
            if (!candidate->reason)
                return phema_fail_memory(err);
        } else if (time > latest) {
            candidate->reason = phema_arena_printf(
                candidates->arena, "with the time %s of '%s' inside, far beyond the others",
                phema_number_format(&number, time), counter);
            if (!candidate->reason)
                return phema_fail_memory(err);
        } else if (time > newest) {
            candidate->named_time = time;
            candidate->is_left_out = false;
            candidate->reason = NULL;
            last = candidate;
            candidates_note(candidates, "'%s' takes part, at the time %s of '%s' inside",
                            candidate->label, phema_number_format(&number, time), counter);
        }
    }
    return status;
}

/* Whether the batches of the files grow as their numbers plus 1 do: each epoch has as many. */
static bool are_batches_one_less(const struct counted *counted, size_t n)
{
    double first = counted[0].candidate->named_time + 1;
    for (size_t i = 0; i < n; i++)
        if (!(counted[i].batches * first ==
              counted[0].batches * (counted[i].candidate->named_time + 1)))
            return false;
    return n > 2 && counted[0].batches > 0;
}

/* Names that count from 0 are those of a first epoch or file, whose training has begun.
 *   inside, says  a number in all files that shows it where the first ones are missing, and how;
 *                 NULL: none does */
static enum phema_status count_from_one(struct candidate_list *candidates, struct counted *counted,
                                        size_t n, const char *inside, const char *says,
                                        struct phema_error *err)
{
    struct phema_name_buffer name;
    const struct candidate *first = counted[0].candidate;
    const char *text = (const char *)first->time_text.data;
    const char *unit = text ? name_unit(first->base, (size_t)(text - first->base)) : NULL;
    if ((first->named_time > 0 && !inside) || n < 2 || (unit && strcmp(unit, "epochs") != 0))
        return PHEMA_OK;
    const char *base = phema_name_show(&name, first->base);
    candidates->times_note = phema_arena_printf(
        candidates->arena,
        inside && first->named_time > 0
            ? "times: the numbers in the names and 1 ('%s'), since '%s' inside %s"
            : "times: the numbers in the names and 1, since they count from 0 ('%s')",
        base, inside, says);
    for (size_t i = 0; i < n; i++)
        counted[i].candidate->named_time += 1;
    return candidates->times_note ? PHEMA_OK : phema_fail_memory(err);
}

/* The files with a number, or those without. */
static size_t list_files(struct counted *out, size_t most, const struct candidate_list *candidates,
                         bool has_number)
{
    size_t n = 0;
    for (size_t i = 0; i < candidates->n && n < most; i++) {
        struct candidate *candidate = &candidates->items[i];
        bool is_one = has_number ? !candidate->is_left_out
                                 : candidate->is_left_out && isnan(candidate->named_time);
        if (is_one && candidate->path && !candidate->is_excluded &&
            (has_number || candidate_is_checkpoint(candidates, candidate)))
            out[n++] = (struct counted){.candidate = candidate};
    }
    return n;
}

/* The counter that is the time; list->n: none is, or two numbers without a word differ. */
static size_t choose(const struct counter_list *list, const struct counted *counted, size_t n,
                     bool is_vague, bool are_dates)
{
    size_t best = list->n;
    bool is_doubtful = false;
    for (size_t c = 0; c < list->n; c++) {
        const struct counter *counter = &list->items[c], *other = &list->items[best];
        bool is_time = counter->rank == NAMELESS ? counts_in_epochs(counted, n, c)
                       : is_vague                ? rises_alone(counted, n, c, are_dates)
                                                 : rises(counted, n, c);
        if (!is_time)
            continue;
        is_doubtful = is_doubtful || (best < list->n && other->rank == NAMELESS &&
                                      counted[0].values[c] != counted[0].values[best]);
        if (best == list->n || counter->rank < other->rank ||
            (counter->rank == other->rank && counter->dots < other->dots))
            best = c;
    }
    return is_doubtful && list->items[best].rank == NAMELESS ? list->n : best;
}

enum phema_status counters_apply(struct candidate_list *candidates, bool counts_steps, bool *vague,
                                 bool are_dates, const struct phema_checkpoint_options *options,
                                 struct phema_error *err)
{
    struct counted *counted = calloc(candidates->n + MOST_EXTRA, sizeof(*counted));
    if (!counted)
        return phema_fail_memory(err);
    struct counter_list list = {.n = 0};
    size_t n = list_files(counted, candidates->n, candidates, true), n_read = 0;
    struct counted *extra = counted + n;
    size_t n_extra = list_files(extra, MOST_EXTRA, candidates, false);
    enum phema_status status = PHEMA_OK;
    if (n)
        qsort(counted, n, sizeof(*counted), compare_times);
    bool takes_nameless = !vague && !counts_steps && are_successive(counted, n);
    for (size_t i = 0; i < n && !status && (i == 0 || list.n || list.epochs || list.batches);
         i++, n_read++)
        status = read_counters(&counted[i], &list, candidates, takes_nameless, options, err);
    for (size_t i = 0; i < n_extra && !status && list.n; i++) {
        struct phema_error ignored = {0}; /* it need not be a checkpoint */
        if (read_counters(&extra[i], &list, candidates, false, options, &ignored)) {
            candidates->damaged = NULL;
            for (size_t c = 0; c < list.n; c++)
                extra[i].values[c] = PHEMA_UNKNOWN;
        }
    }
    size_t best = list.n;
    if (n_read == n && !status)
        best = choose(&list, counted, n, vague != NULL, are_dates);
    if (!status && n && best < list.n && counts_steps)
        best = agrees(counted, n, best) ? best : list.n;
    if (!status && n && best < list.n) {
        status = use_counter(candidates, counted, n, &list.items[best], best, are_dates, err);
        if (!status)
            status = place_extra(candidates, counted, n, extra, n_extra, best,
                                 list.items[best].name, err);
    } else if (!status && n && !counts_steps && !vague) {
        bool counts_epochs = n_read == n && list.epochs && are_epochs(counted, n);
        /* one further down may be that of an iterator, the epoch to begin next */
        bool are_one_less = counts_epochs && strcmp(list.epochs, "epoch") == 0 &&
                            counted[0].epoch > counted[0].candidate->named_time;
        if (counts_epochs)
            candidates->unit_inside = "epochs";
        bool counts_batches = n_read == n && list.batches && are_batches_one_less(counted, n);
        status = count_from_one(candidates, counted, n,
                                are_one_less     ? list.epochs
                                : counts_batches ? list.batches
                                                 : NULL,
                                are_one_less ? "is one more" : "grows with them", err);
    }
    if (vague)
        *vague = best == list.n;
    free(counted);
    return status;
}
