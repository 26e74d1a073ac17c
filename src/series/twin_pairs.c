// SPDX-License-Identifier: Apache-2.0
/* twin_pairs.c - pairs of prefixes in the names of a checkpoint below which the same names and shapes
 * stand: "model." and "ema.module.". */
#include "twins.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Subtrees lie below at most so many keys, and so many parts with the items of lists. */
#define MOST_KEYS  6
#define MOST_PARTS 8
/* More places of one name are layers that are alike, not sets. */
#define MOST_IN_GROUP 8
#define MOST_COMPARED 32 /* pairs, by all their names */

/* A tensor seen from a place in its name. */
struct view {
    struct phema_span prefix, name; /* before and behind the place, without wrappers */
    bool is_deep;                   /* the place is below an item of a list, not right behind it */
    const struct phema_tensor *tensor;
};

int twin_shapes_compare(const struct phema_tensor *a, const struct phema_tensor *b)
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
    int order = phema_spans_compare(left->name, right->name);
    order = order ? order : twin_shapes_compare(left->tensor, right->tensor);
    order = order ? order : (int)left->is_deep - (int)right->is_deep;
    return order ? order : (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct twin_pair *left = a, *right = b;
    int order = phema_spans_compare(left->first, right->first);
    return order ? order : phema_spans_compare(left->second, right->second);
}

bool span_begins_with(struct phema_span outer, struct phema_span inner)
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
static bool is_item(const char *name, size_t begin, size_t end)
{
    bool is_number = strspn(name + begin, "0123456789") >= end - begin;
    bool is_fraction = begin >= 2 && isdigit((unsigned char)name[begin - 2]);
    return is_number && !is_fraction;
}

/* Whether the part of a prefix that a place lies in is an item. */
static bool is_item_at(struct phema_span prefix, size_t at)
{
    size_t begin = at, end = at;
    while (begin && prefix.data[begin - 1] != '.')
        begin--;
    while (end < prefix.size && prefix.data[end] != '.')
        end++;
    return begin < end && is_item((const char *)prefix.data, begin, end);
}

/* "models.0." */
static bool ends_with_number(struct phema_span prefix)
{
    return prefix.size && is_item_at(prefix, prefix.size - 1);
}

/* "algorithms.0.ema." */
static bool is_below_item(struct phema_span prefix)
{
    for (size_t at = 0; at + 1 < prefix.size; at++)
        if (prefix.data[at] == '.' && is_item_at(prefix, at))
            return true;
    return false;
}

static size_t find_difference(const struct twin_pair *pair)
{
    struct phema_span a = pair->first, b = pair->second;
    size_t at = 0;
    while (at < a.size && at < b.size && a.data[at] == b.data[at])
        at++;
    return at;
}

/* "blocks.0.attn." and "blocks.1.attn." */
static bool differ_in_item(const struct twin_pair *pair)
{
    size_t at = find_difference(pair);
    return is_item_at(pair->first, at) && is_item_at(pair->second, at);
}

/* The next dot from begin on that is not in a dict that is a key, as in "EMA{'decay': 0.9}". */
static const char *find_dot(const char *name, size_t begin, size_t size)
{
    unsigned depth = 0;
    for (size_t i = begin; i < size; i++) {
        depth += name[i] == '{';
        depth -= name[i] == '}' && depth;
        if (name[i] == '.' && depth == 0)
            return name + i;
    }
    return NULL;
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
        bool is_deep = false, is_behind_item = false;
        if (!name)
            return false;
        unsigned n_keys = 0;
        for (unsigned parts = 0; parts <= MOST_PARTS && n_keys <= MOST_KEYS && *name; parts++) {
            views[(*n)++] = (struct view){.prefix = {(const uint8_t *)name, begin},
                                          .name = {(const uint8_t *)name + begin, size - begin},
                                          .is_deep = is_deep,
                                          .tensor = &tensors[i]};
            const char *dot = find_dot(name, begin, size);
            if (!dot)
                break;
            is_deep = is_deep || is_behind_item;
            is_behind_item = is_item(name, begin, (size_t)(dot - name));
            n_keys += !is_behind_item;
            begin = (size_t)(dot - name) + 1;
        }
    }
    return true;
}

/* Pairs of one group of views, [n] of the same name and shape. */
static size_t add_pairs(struct twin_pair *pairs, const struct view *views, size_t n)
{
    size_t n_pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            struct phema_span a = views[i].prefix, b = views[j].prefix;
            int order = phema_spans_compare(a, b);
            if (order)
                pairs[n_pairs++] = order < 0 ? (struct twin_pair){.first = a, .second = b}
                                             : (struct twin_pair){.first = b, .second = a};
        }
    return n_pairs;
}

const char *twin_name_behind(const char *name, size_t *size, struct phema_span prefix)
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
        bool is_below = twin_name_behind(tensors[i].name, &size, prefix) != NULL;
        bool is_other = other.size > prefix.size &&
                        twin_name_behind(tensors[i].name, &other_size, other) != NULL;
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
    size_t n = n_first + n_second, n_all = count_below(checkpoint, all, all);
    pair->has_most = 5 * n >= 4 * n_all;
    pair->has_half = 2 * n >= n_all;
    return 5 * pair->n_shared >= 4 * (n_first < n_second ? n_first : n_second);
}

/* A part of a pair that as many names share and whose prefixes are shorter: a fragment of a model. */
static bool is_inner(const struct twin_pair *pairs, size_t n, size_t at)
{
    const struct twin_pair *inner = &pairs[at];
    for (size_t i = 0; i < n; i++) {
        const struct twin_pair *outer = &pairs[i];
        if (i != at && outer->first.size && outer->n_shared >= inner->n_shared &&
            ((span_begins_with(outer->first, inner->first) &&
              span_begins_with(outer->second, inner->second)) ||
             (span_begins_with(outer->first, inner->second) &&
              span_begins_with(outer->second, inner->first))))
            return true;
    }
    return false;
}

/* The part of all parameters, in tenths, that two sets below items share at least. Else they are layers
 * that are alike, or parts of layers. Two items hold all parameters; one item and a key may have a third
 * set beside them. */
static size_t least_shared(const struct twin_pair *pair)
{
    bool has_number = ends_with_number(pair->first);
    if ((has_number && ends_with_number(pair->second)) || differ_in_item(pair))
        return 4;
    return has_number || is_below_item(pair->first) || is_below_item(pair->second) ? 2 : 0;
}

/* Merges equal pairs, and puts the best ones first.
 *   n_parameters  of the checkpoint */
static size_t count_pairs(struct twin_pair *pairs, size_t n, size_t n_parameters)
{
    size_t n_pairs = 0;
    qsort(pairs, n, sizeof(*pairs), compare_pairs);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_pairs(&pairs[i], &pairs[end]) == 0;)
            end++;
        bool is_layer = 10 * (end - i) < least_shared(&pairs[i]) * n_parameters;
        pairs[n_pairs] = pairs[i];
        pairs[n_pairs].n_shared = end - i;
        n_pairs += !is_layer;
    }
    qsort(pairs, n_pairs, sizeof(*pairs), compare_worth);
    return n_pairs;
}

static size_t find_group_end(const struct view *views, size_t n, size_t begin)
{
    size_t end = begin + 1;
    while (end < n && phema_spans_compare(views[begin].name, views[end].name) == 0 &&
           twin_shapes_compare(views[begin].tensor, views[end].tensor) == 0)
        end++;
    return end;
}

/* How many views of a group are compared: of many not all below items, and none if the others are
 * too many. */
static size_t count_seen(const struct view *views, size_t n)
{
    while (n > MOST_IN_GROUP && views[n - 1].is_deep)
        n--;
    return n <= MOST_IN_GROUP ? n : 0;
}

enum phema_status twin_pairs_find(struct twin_pair best[MOST_PAIRS], size_t *n_best,
                                  struct phema_arena *arena,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err)
{
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint), n_pairs = 0;
    struct view *views = phema_arena_array(arena, n_tensors * (MOST_PARTS + 1) + 1, sizeof(*views));
    *n_best = 0;
    size_t n = 0;
    if (!views || !list_views(views, &n, arena, checkpoint))
        return phema_fail_memory(err);
    qsort(views, n, sizeof(*views), compare_views);
    size_t n_parameters = 0;
    for (size_t i = 0; i < n; i++)
        n_parameters += views[i].prefix.size == 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = find_group_end(views, n, i);
        size_t n_seen = count_seen(views + i, end - i);
        n_pairs += n_seen ? n_seen * (n_seen - 1) / 2 : 0;
    }
    struct twin_pair *pairs = phema_arena_array(arena, n_pairs + 1, sizeof(*pairs));
    if (!pairs)
        return phema_fail_memory(err);
    n_pairs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = find_group_end(views, n, i);
        n_pairs += add_pairs(pairs + n_pairs, views + i, count_seen(views + i, end - i));
    }
    n_pairs = count_pairs(pairs, n_pairs, n_parameters);
    n_pairs = n_pairs < MOST_COMPARED ? n_pairs : MOST_COMPARED;
    for (size_t i = 0; i < n_pairs && *n_best < MOST_PAIRS; i++)
        if (2 * pairs[i].n_shared >= pairs[0].n_shared && !is_inner(pairs, n_pairs, i) &&
            is_whole(&pairs[i], checkpoint))
            best[(*n_best)++] = pairs[i];
    return PHEMA_OK;
}

/* ---- Names as hints ---- */

/* Whether a word is one of a list, in any case. */
static bool is_word(const char *word, size_t size, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == size && strncasecmp(word, words[i], size) == 0)
            return true;
    return false;
}

bool says_average(struct phema_span prefix)
{
    static const char *const words[] = {"ema",    "avg", "average", "averaged", "averages",
                                        "shadow", "swa", "polyak",  "teacher",  "target"};
    static const char *const denials[] = {"no", "non", "not", "without"};
    const char *text = (const char *)prefix.data;
    bool is_denied = false; /* "non_ema" */
    for (size_t at = 0, end; at < prefix.size; at = end + 1) {
        for (end = at; end < prefix.size && isalpha((unsigned char)text[end]);)
            end++;
        if (!is_denied && is_word(text + at, end - at, words, ARRAY_LEN(words)))
            return true;
        is_denied = is_word(text + at, end - at, denials, ARRAY_LEN(denials));
    }
    return false;
}

/* The part of a prefix that a place lies in, with the name of the list before it where the part begins
 * with a number: "ema_0.99." and "emas.0.", but "layers.0." of "ema.layers.0.". */
static struct phema_span find_own_name(struct phema_span prefix, size_t at)
{
    size_t begin = at;
    for (;; begin--) {
        while (begin && prefix.data[begin - 1] != '.')
            begin--;
        if (!begin || !isdigit(prefix.data[begin]))
            break;
    }
    return (struct phema_span){prefix.data + begin, prefix.size - begin};
}

bool twin_pair_says_averages(const struct twin_pair *pair)
{
    size_t at = find_difference(pair);
    return at < pair->first.size && says_average(find_own_name(pair->first, at)) &&
           says_average(find_own_name(pair->second, at));
}

/* "0.99" of "ema_0.99.", but not "0.1" of "blocks.0.1.". */
static bool is_decimal(struct phema_span prefix, size_t begin)
{
    size_t before = begin ? begin - 1 : 0;
    bool is_fraction = before && prefix.data[before] == '.' && isdigit(prefix.data[before - 1]);
    while (before && isdigit(prefix.data[before - 1]))
        before--;
    return is_fraction && before && prefix.data[before - 1] != '.';
}

/* Whether two prefixes differ in one whole number alone.
 *   begin  out: where it begins */
static bool differ_in_number(size_t *begin, const struct twin_pair *pair)
{
    struct phema_span a = pair->first, b = pair->second;
    size_t at = find_difference(pair), a_end = at, b_end = at;
    while (at && isdigit(a.data[at - 1]))
        at--;
    while (a_end < a.size && isdigit(a.data[a_end]))
        a_end++;
    while (b_end < b.size && isdigit(b.data[b_end]))
        b_end++;
    *begin = at;
    return at < a_end && at < b_end && !is_decimal(a, at) &&
           phema_spans_compare((struct phema_span){a.data + a_end, a.size - a_end},
                               (struct phema_span){b.data + b_end, b.size - b_end}) == 0;
}

/* Whether a parameter below a parent is in neither set. */
static bool has_others(const struct twin_pair *pair, struct phema_span parent,
                       const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *name = tensors[i].name;
        size_t rest[3] = {tensors[i].name_size, tensors[i].name_size, tensors[i].name_size};
        if (twin_is_parameter(&tensors[i]) && twin_name_behind(name, &rest[0], parent) &&
            !twin_name_behind(name, &rest[1], pair->first) &&
            !twin_name_behind(name, &rest[2], pair->second))
            return true;
    }
    return false;
}

bool twin_pair_is_of_layers(const struct twin_pair *pair, const struct phema_checkpoint *checkpoint)
{
    size_t begin = 0;
    if (!differ_in_number(&begin, pair))
        return false;
    bool says_averages = twin_pair_says_averages(pair);
    if (says_averages && begin && pair->first.data[begin - 1] != '.')
        return false;
    struct phema_span parent = {pair->first.data, says_averages ? begin : 0};
    return has_others(pair, parent, checkpoint);
}

const char *twin_show(struct phema_name_buffer *shown, struct phema_span prefix)
{
    size_t size = prefix.size;
    size -= size && prefix.data[size - 1] == '.';
    return phema_name_escape(shown, size ? (const char *)prefix.data : ".", size ? size : 1);
}
