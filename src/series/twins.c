// SPDX-License-Identifier: Apache-2.0
/* twins.c - two sets of the same parameters in a checkpoint of no known trainer: subtrees whose
 * names and shapes agree. Which one is the average is asked of the data: an average looks back. Of
 * sets A and B at times 1 and 2, |A2 - B1| < |B2 - A1| where A averages B. Names decide only where
 * there is one time. */
#include "twins.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"

/* Subtrees lie at most so deep. */
#define MOST_DOTS 3
/* More places of one name are layers that are alike, not sets. */
#define MOST_IN_GROUP 8
/* Twins of a training are near each other: their difference, squared, is a small part of them. */
#define MOST_APART 0.3
/* Where no name says average: two networks that began alike have margins up to 0.18. */
#define LEAST_UNNAMED 0.2

/* ---- Prefixes whose tensors agree ---- */

/* A tensor seen from a place in its name. */
struct view {
    struct phema_span prefix, name; /* before and behind the place, without wrappers */
    const struct phema_tensor *tensor;
};

/* So many pairs are compared by their data: of three sets that are alike, there are three. */
#define MOST_PAIRS    6
#define MOST_COMPARED 32 /* by all their names */

static int compare_spans(struct phema_span a, struct phema_span b)
{
    return phema_bytes_compare(a.data, a.size, b.data, b.size);
}

static int compare_shapes(const struct phema_tensor *a, const struct phema_tensor *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return a->shape[i] < b->shape[i] ? -1 : 1;
    return 0;
}

static int compare_views(const void *a, const void *b)
{
    const struct view *left = a, *right = b;
    int order = compare_spans(left->name, right->name);
    order = order ? order : compare_shapes(left->tensor, right->tensor);
    return order ? order : (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct twin_pair *left = a, *right = b;
    int order = compare_spans(left->first, right->first);
    return order ? order : compare_spans(left->second, right->second);
}

static bool is_nested(struct phema_span outer, struct phema_span inner)
{
    return inner.size >= outer.size && memcmp(inner.data, outer.data, outer.size) == 0;
}

/* Better ones first: that more names share, and that say better where the model begins: below a
 * key, and there as high as possible. */
static int compare_worth(const void *a, const void *b)
{
    const struct twin_pair *left = a, *right = b;
    size_t size = left->first.size + left->second.size;
    size_t right_size = right->first.size + right->second.size;
    if (left->n_shared != right->n_shared)
        return left->n_shared > right->n_shared ? -1 : 1;
    if ((left->first.size > 0) != (right->first.size > 0))
        return left->first.size > 0 ? -1 : 1;
    if (size != right_size)
        return size < right_size ? -1 : 1;
    return compare_pairs(a, b);
}

/* A part of a prefix that is a number is a layer or an item, but for that of a decay ("ema_0.9999"). */
static bool ends_prefix(const char *name, size_t begin, size_t end)
{
    bool is_number = strspn(name + begin, "0123456789") >= end - begin;
    bool is_fraction = begin >= 2 && isdigit((unsigned char)name[begin - 2]);
    return is_number && !is_fraction;
}

/* All views of all parameters; false: no memory. */
static bool list_views(struct view *views, size_t *n, struct phema_arena *arena,
                       const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    *n = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size, begin = 0;
        const char *name = twin_is_parameter(&tensors[i])
                               ? name_without_wrappers(&size, tensors[i].name, arena)
                               : "";
        if (!name)
            return false;
        for (unsigned dots = 0; dots <= MOST_DOTS && *name; dots++) {
            views[(*n)++] = (struct view){.prefix = {(const uint8_t *)name, begin},
                                          .name = {(const uint8_t *)name + begin, size - begin},
                                          .tensor = &tensors[i]};
            const char *dot = memchr(name + begin, '.', size - begin);
            if (!dot || ends_prefix(name, begin, (size_t)(dot - name)))
                break;
            begin = (size_t)(dot - name) + 1;
        }
    }
    return true;
}

/* Pairs of one group of views, [n] of the same name and shape. */
static size_t add_pairs(struct twin_pair *pairs, const struct view *views, size_t n)
{
    size_t n_pairs = 0;
    for (size_t i = 0; i < n && n <= MOST_IN_GROUP; i++)
        for (size_t j = 0; j < i; j++) {
            struct phema_span a = views[i].prefix, b = views[j].prefix;
            int order = compare_spans(a, b);
            if (order)
                pairs[n_pairs++] = order < 0 ? (struct twin_pair){a, b, 0, false}
                                             : (struct twin_pair){b, a, 0, false};
        }
    return n_pairs;
}

/* The rest of a name behind a prefix, wrappers in the name aside; NULL: it begins otherwise. */
static const char *behind(const char *name, size_t *size, struct phema_span prefix)
{
    size_t at = 0, p = 0;
    while (name && at < *size) {
        size_t skipped = wrapper_at(name, *size, at);
        if (!skipped && p == prefix.size)
            break;
        if (!skipped && (uint8_t)name[at] != prefix.data[p++])
            return NULL;
        at += skipped ? skipped : 1;
    }
    *size -= at;
    return p == prefix.size && *size ? name + at : NULL;
}

/* Parameters below a prefix and not below the other one. */
static size_t count_below(const struct phema_checkpoint *checkpoint, struct phema_span prefix,
                          struct phema_span other)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t n = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size, other_size = size;
        bool is_below = behind(tensors[i].name, &size, prefix) != NULL;
        bool is_other =
            other.size > prefix.size && behind(tensors[i].name, &other_size, other) != NULL;
        n += is_below && !is_other && twin_is_parameter(&tensors[i]);
    }
    return n;
}

/* The smaller set is a part of the larger one, or they are alike. */
static bool is_whole(struct twin_pair *pair, const struct phema_checkpoint *checkpoint)
{
    size_t n_first = count_below(checkpoint, pair->first, pair->second);
    size_t n_second = count_below(checkpoint, pair->second, pair->first);
    const struct phema_span all = {(const uint8_t *)"", 0};
    pair->has_most = 5 * (n_first + n_second) >= 4 * count_below(checkpoint, all, all);
    return 5 * pair->n_shared >= 4 * (n_first < n_second ? n_first : n_second);
}

/* A part of a pair that as many names share and whose prefixes are shorter: a fragment of a model. */
static bool is_inner(const struct twin_pair *pairs, size_t n, size_t at)
{
    const struct twin_pair *inner = &pairs[at];
    for (size_t i = 0; i < n; i++) {
        const struct twin_pair *outer = &pairs[i];
        if (i != at && outer->first.size && outer->n_shared >= inner->n_shared &&
            ((is_nested(outer->first, inner->first) && is_nested(outer->second, inner->second)) ||
             (is_nested(outer->first, inner->second) && is_nested(outer->second, inner->first))))
            return true;
    }
    return false;
}

/* Merges equal pairs, and puts the best ones first. */
static size_t count_pairs(struct twin_pair *pairs, size_t n)
{
    size_t n_pairs = 0;
    qsort(pairs, n, sizeof(*pairs), compare_pairs);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_pairs(&pairs[i], &pairs[end]) == 0;)
            end++;
        pairs[n_pairs] = pairs[i];
        pairs[n_pairs++].n_shared = end - i;
    }
    qsort(pairs, n_pairs, sizeof(*pairs), compare_worth);
    return n_pairs;
}

static size_t find_group_end(const struct view *views, size_t n, size_t begin)
{
    size_t end = begin + 1;
    while (end < n && compare_spans(views[begin].name, views[end].name) == 0 &&
           compare_shapes(views[begin].tensor, views[end].tensor) == 0)
        end++;
    return end;
}

/* The pairs of prefixes that most names share, at most MOST_PAIRS of about as many. */
static enum phema_status find_pairs(struct twin_pair best[MOST_PAIRS], size_t *n_best,
                                    struct phema_arena *arena,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint), n_pairs = 0;
    struct view *views = phema_arena_array(arena, n_tensors * (MOST_DOTS + 1) + 1, sizeof(*views));
    *n_best = 0;
    size_t n = 0;
    if (!views || !list_views(views, &n, arena, checkpoint))
        return phema_fail_memory(err);
    qsort(views, n, sizeof(*views), compare_views);
    for (size_t i = 0, end; i < n; i = end) {
        end = find_group_end(views, n, i);
        n_pairs += end - i <= MOST_IN_GROUP ? (end - i) * (end - i - 1) / 2 : 0;
    }
    struct twin_pair *pairs = phema_arena_array(arena, n_pairs + 1, sizeof(*pairs));
    if (!pairs)
        return phema_fail_memory(err);
    n_pairs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = find_group_end(views, n, i);
        n_pairs += add_pairs(pairs + n_pairs, views + i, end - i);
    }
    n_pairs = count_pairs(pairs, n_pairs);
    n_pairs = n_pairs < MOST_COMPARED ? n_pairs : MOST_COMPARED;
    for (size_t i = 0; i < n_pairs && *n_best < MOST_PAIRS; i++)
        if (2 * pairs[i].n_shared >= pairs[0].n_shared && !is_inner(pairs, n_pairs, i) &&
            is_whole(&pairs[i], checkpoint))
            best[(*n_best)++] = pairs[i];
    return PHEMA_OK;
}

/* ---- Names as hints ---- */

/* Whether a word of the prefix says average. */
static bool says_average(struct phema_span prefix)
{
    static const char *const words[] = {"ema",    "avg", "average", "averaged", "averages",
                                        "shadow", "swa", "polyak",  "teacher",  "target"};
    const char *text = (const char *)prefix.data;
    for (size_t at = 0, end; at < prefix.size; at = end + 1) {
        for (end = at; end < prefix.size && isalpha((unsigned char)text[end]);)
            end++;
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            if (strlen(words[i]) == end - at && strncasecmp(text + at, words[i], end - at) == 0)
                return true;
    }
    return false;
}

/* ---- The newest checkpoints ---- */

/* The two newest checkpoints of the series; false: there is one, or none is numbered. */
static bool find_newest(const struct candidate **earlier, const struct candidate **later,
                        const struct candidate_list *candidates)
{
    *earlier = *later = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->path || isnan(candidate->named_time))
            continue;
        if (!*later || candidate->named_time > (*later)->named_time) {
            *earlier = *later;
            *later = candidate;
        } else if (candidate->named_time < (*later)->named_time &&
                   (!*earlier || candidate->named_time > (*earlier)->named_time)) {
            *earlier = candidate;
        }
    }
    return *earlier != NULL;
}

/* Opens the two newest checkpoints; NULL where the series has one. */
static enum phema_status open_newest(struct phema_checkpoint *opened[2],
                                     const struct candidate_list *candidates,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    const struct candidate *earlier, *later;
    opened[0] = opened[1] = NULL;
    if (!find_newest(&earlier, &later, candidates))
        return PHEMA_OK;
    enum phema_status status = phema_checkpoint_open(&opened[0], earlier->path, options, err);
    if (!status)
        status = phema_checkpoint_open(&opened[1], later->path, options, err);
    return status;
}

/* ---- The decision ---- */

/* Fit for labels and messages: "model_avg.", "state_dict.ema_model." */
static bool is_plain(struct phema_span prefix)
{
    for (size_t i = 0; i < prefix.size; i++)
        if (!isalnum(prefix.data[i]) && !strchr("_.-", prefix.data[i]))
            return false;
    return prefix.size > 1;
}

bool twins_split(struct split_name *out, const struct twins *twins, const char *name, size_t size)
{
    static const char *const counters[] = {"step",  "steps",   "initted",    "num_updates",
                                           "decay", "updates", "n_averaged", "optimization_step"};
    const struct phema_span *average = &twins->average, *raw = &twins->raw;
    bool average_first = is_nested(*raw, *average);
    for (unsigned i = 0; i < 2; i++) {
        bool is_raw = average_first ? i == 1 : i == 0;
        const struct phema_span *prefix = is_raw ? raw : average;
        size_t inner_size = size;
        const char *inner = behind(name, &inner_size, *prefix);
        if (!inner)
            continue;
        const char *key = is_plain(*average) ? (const char *)average->data : "ema.";
        *out = (struct split_name){.set = is_raw ? "raw" : key,
                                   .set_size = is_raw ? 3 : strlen(key) - 1,
                                   .name = inner,
                                   .name_size = inner_size,
                                   .is_raw = is_raw};
        for (size_t c = 0; c < ARRAY_LEN(counters) && !is_raw; c++)
            if (phema_bytes_are(out->name, out->name_size, counters[c]))
                return false;
        return !root_is_optimizer(name, size);
    }
    return false;
}

static const char *show(struct phema_name_buffer *shown, struct phema_span prefix)
{
    size_t size = prefix.size ? prefix.size - 1 : 0; /* without the dot */
    return phema_name_escape(shown, size ? (const char *)prefix.data : ".", size ? size : 1);
}

/* is_unclear: they are near each other, and neither names nor data say which is the average */
static bool decide(struct twin_decision *out, bool *is_unclear, const struct twin_pair *pair,
                   bool has_evidence)
{
    bool says_first = says_average(pair->first), says_second = says_average(pair->second);
    if (says_first && is_nested(pair->first, pair->second))
        says_second = says_average((struct phema_span){pair->second.data + pair->first.size,
                                                       pair->second.size - pair->first.size});
    const struct twin_evidence *evidence = &out->evidence;
    bool differs = has_evidence && evidence->forward != evidence->backward;
    bool is_near = evidence->apart <= MOST_APART * evidence->size;
    *is_unclear = false;
    if (differs && !is_near)
        return false;
    out->is_by_data = differs;
    /* The first is the average where it stays nearer to the second's past than the reverse. */
    out->is_first = out->is_by_data ? evidence->backward < evidence->forward : says_first;
    out->contradicts = says_first != says_second && says_first != out->is_first;
    double difference = fabs(evidence->forward - evidence->backward);
    bool is_clear = difference >= LEAST_UNNAMED * (evidence->forward + evidence->backward);
    bool may_be = out->is_by_data && pair->has_most;
    *is_unclear = says_first == says_second && may_be && !is_clear;
    return says_first != says_second || (may_be && is_clear);
}

enum phema_status twins_tell(struct candidate_list *candidates,
                             const struct twin_decision *decision, size_t n, const char *raw,
                             const char *average, struct phema_error *err)
{
    const struct twin_evidence *evidence = &decision->evidence;
    double margin = decision->is_by_data ? fabs(evidence->forward - evidence->backward) /
                                               (evidence->forward + evidence->backward)
                                         : PHEMA_UNKNOWN;
    const char *by = decision->is_by_data ? "data" : "names";
    struct phema_name_buffer looks = {"by its name"};
    if (decision->is_by_data)
        (void)snprintf(looks.text, sizeof(looks.text), "which looks back at it (margin %.2g)%s",
                       margin, decision->contradicts ? ", whatever their names say" : "");
    candidates->sets_note = phema_arena_printf(
        candidates->arena, "sets: %zu snapshot%s each of '%s' and its average '%s', %s", n,
        n == 1 ? "" : "s", raw, average, looks.text);
    bool is_told = candidates_add_set(candidates, average, "average", by, margin) &&
                   candidates_add_set(candidates, raw, "raw", by, margin);
    return is_told && candidates->sets_note ? PHEMA_OK : phema_fail_memory(err);
}

static const struct twins *make_twins(struct phema_arena *arena, const struct twin_pair *pair,
                                      bool is_first)
{
    struct phema_span average = is_first ? pair->first : pair->second;
    struct phema_span raw = is_first ? pair->second : pair->first;
    struct twins *twins = phema_arena_alloc(arena, sizeof(*twins));
    char *average_copy = phema_arena_copy(arena, (const char *)average.data, average.size);
    char *raw_copy = phema_arena_copy(arena, (const char *)raw.data, raw.size);
    if (!twins || !average_copy || !raw_copy)
        return NULL;
    *twins = (struct twins){.trainer = {.name = "the averages", .may_lack_raw = true},
                            .average = {(const uint8_t *)average_copy, average.size},
                            .raw = {(const uint8_t *)raw_copy, raw.size}};
    twins->trainer.twins = twins;
    return twins;
}

static enum phema_status fail_unclear(const char *root, const struct twin_pair *pair,
                                      struct phema_error *err)
{
    struct phema_name_buffer first, second;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: '%s' and '%s' have the same tensors, and nothing says whether one is the "
        "average of the other; %s chooses one of them, %s. takes both",
        root, show(&first, pair->first), show(&second, pair->second),
        phema_setting_name(PHEMA_SET_KEY), phema_setting_equals(PHEMA_SET_KEY));
}

/* The first pair of twins. Layers and parts that are alike are none. */
static enum phema_status choose_pair(const struct twins **out, struct candidate_list *candidates,
                                     const struct phema_series_options *options,
                                     const struct twin_pair *pairs, size_t n,
                                     struct phema_error *err)
{
    struct phema_checkpoint *opened[2];
    enum phema_status status = open_newest(opened, candidates, &options->checkpoint, err);
    bool is_needed = !candidates->asks_for_raw && !options->needs_no_profiles;
    struct phema_checkpoint *const checkpoints[4] = {opened[0], opened[1], opened[0], opened[1]};
    /* a sample of a compressed file takes as long as all of it: names decide there */
    bool is_readable = !status && opened[1] && !phema_checkpoint_is_compressed(opened[0]) &&
                       !phema_checkpoint_is_compressed(opened[1]);
    for (size_t i = 0; i < n && !status && !*out; i++) {
        struct twin_decision decision = {.is_first = false};
        if (is_readable)
            status = twin_evidence_read(&decision.evidence, checkpoints, &pairs[i], err);
        bool is_unclear = false;
        bool is_pair = !status && decide(&decision, &is_unclear, &pairs[i], is_readable);
        if (is_unclear && is_needed)
            status = fail_unclear(options->snapshots, &pairs[i], err);
        if (status || !is_pair)
            continue;
        *out = make_twins(candidates->arena, &pairs[i], decision.is_first);
        struct phema_name_buffer raw, average;
        size_t n_files = 0;
        for (size_t c = 0; c < candidates->n; c++)
            n_files += !candidates->items[c].is_left_out;
        status = *out ? twins_tell(candidates, &decision, n_files, show(&raw, (*out)->raw),
                                   show(&average, (*out)->average), err)
                      : phema_fail_memory(err);
    }
    phema_checkpoint_close(opened[0]);
    phema_checkpoint_close(opened[1]);
    return status;
}

/* The key of a list whose name says average, "ema.shadow_params" of "ema.shadow_params.0"; {NULL, 0}:
 * none. */
static struct phema_span find_nameless(const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_span first = {NULL, 0};
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *name = tensors[i].name;
        size_t size = tensors[i].name_size;
        const char *dot = memrchr(name, '.', size);
        size_t key_size = dot ? (size_t)(dot - name) : 0;
        const struct phema_span key = {(const uint8_t *)name, key_size};
        size_t n_digits = 0;
        while (dot && key_size + 1 + n_digits < size && isdigit((unsigned char)dot[1 + n_digits]))
            n_digits++;
        if (!dot || n_digits == 0 || key_size + 1 + n_digits != size ||
            !twin_is_parameter(&tensors[i]) || !says_average(key))
            continue;
        if (first.data && compare_spans(first, key) == 0)
            return first; /* two of them */
        first = key;
    }
    return (struct phema_span){NULL, 0};
}

enum phema_status twins_find(const struct twins **out, struct candidate_list *candidates,
                             const struct phema_series_options *options,
                             const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct twin_pair pairs[MOST_PAIRS];
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out &&
            (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma) || candidate->spec))
            return PHEMA_OK; /* something says already which average the file is */
    }
    enum phema_status status = find_pairs(pairs, &n, candidates->arena, checkpoint, err);
    if (!status && n)
        status = choose_pair(out, candidates, options, pairs, n, err);
    struct phema_span nameless = find_nameless(checkpoint);
    struct phema_name_buffer key;
    if (status || *out || !nameless.data || candidates->asks_for_raw || options->needs_no_profiles)
        return status;
    (void)phema_name_escape(&key, (const char *)nameless.data, nameless.size);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: '%s' holds averages without names, which are not put together with those "
        "of the parameters; %s%s averages them under their numbers, %sraw the raw "
        "parameters",
        phema_checkpoint_path(checkpoint), key.text, phema_setting_equals(PHEMA_SET_KEY), key.text,
        phema_setting_equals(PHEMA_SET_INPUT_PROFILE));
}

enum phema_status twins_compare(struct twin_decision *decision, bool *are_twins,
                                struct phema_checkpoint *const checkpoints[4], const char *first,
                                const char *second, struct phema_error *err)
{
    const struct phema_checkpoint *a = checkpoints[1], *b = checkpoints[3];
    struct twin_pair pair = {.first = {(const uint8_t *)"", 0}, .second = {(const uint8_t *)"", 0}};
    size_t n_first = 0, n_second = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(a); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(a)[i];
        const struct phema_tensor *twin = phema_checkpoint_find(b, tensor->name, tensor->name_size);
        n_first += twin_is_parameter(tensor);
        pair.n_shared += twin_is_parameter(tensor) && twin && compare_shapes(tensor, twin) == 0;
    }
    for (size_t i = 0; i < phema_checkpoint_n_tensors(b); i++)
        n_second += twin_is_parameter(&phema_checkpoint_tensors(b)[i]);
    *are_twins = false;
    *decision = (struct twin_decision){.is_first = false};
    if (pair.n_shared == 0 || 5 * pair.n_shared < 4 * (n_first < n_second ? n_first : n_second))
        return PHEMA_OK;
    enum phema_status status = twin_evidence_read(&decision->evidence, checkpoints, &pair, err);
    if (status)
        return status;
    const struct twin_pair names = {.first = {(const uint8_t *)first, strlen(first)},
                                    .second = {(const uint8_t *)second, strlen(second)},
                                    .has_most = true};
    bool is_unclear = false; /* then the file that is named as the model is taken, if any */
    *are_twins = decide(decision, &is_unclear, &names, true);
    return PHEMA_OK;
}
