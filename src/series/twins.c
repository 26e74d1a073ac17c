// SPDX-License-Identifier: Apache-2.0
/* twins.c - two sets of the same parameters in a checkpoint of no known trainer: subtrees whose
 * names and shapes agree. Which one is the average is asked of the data: an average looks back. Of
 * sets A and B at times 1 and 2, |A2 - B1| < |B2 - A1| where A averages B. Names decide only where
 * there is one time. */
#include "twins.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"

/* Twins of a training are near each other: their difference, squared, is a small part of them. */
#define MOST_APART 0.3
/* A long average that is called so may lag far behind, but it has come the same way, and has a similar
 * norm: one of gradients has not. */
#define MOST_APART_NAMED 0.8
#define MOST_LARGER      4.0
/* Squared cosine of a step of an average and the way to the raw set; that of sets without relation is
 * 0.25. */
#define LEAST_TOWARDS 0.5
/* Where no name says average: two networks that began alike have margins up to 0.18. */
#define LEAST_UNNAMED 0.2

/* Against names: an average whose decay rises to 1, or one that is touched seldom, hardly moves from one
 * time to the next, and parameters that move in few directions do so by chance. Of 1728 simulated
 * averages 168 looked like the raw set in the newest interval, and 2 by more than this in all. */
#define LEAST_AGAINST  0.1
#define MOST_INTERVALS 32

/* ---- The newest checkpoints ---- */

bool twins_find_newest(const struct candidate *newest[2], const struct candidate_list *candidates,
                       const char *const *kinds, const char *kind)
{
    newest[0] = newest[1] = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        double time = candidate->named_time;
        bool is_one =
            kinds ? kinds[i] && strcmp(kinds[i], kind) == 0 : candidate->path && !isnan(time);
        if (candidate->is_left_out || !is_one)
            continue;
        if (!newest[1] || time > newest[1]->named_time) {
            newest[0] = newest[1];
            newest[1] = candidate;
        } else if ((kinds || time < newest[1]->named_time) &&
                   (!newest[0] || time > newest[0]->named_time)) {
            newest[0] = candidate;
        }
    }
    return newest[0] && newest[0]->named_time < newest[1]->named_time;
}

/* Opens the two newest checkpoints; NULL where the series has one. */
static enum phema_status open_newest(struct phema_checkpoint *opened[2],
                                     struct candidate_list *candidates,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    const struct candidate *newest[2];
    opened[0] = opened[1] = NULL;
    if (!twins_find_newest(newest, candidates, NULL, NULL))
        return PHEMA_OK;
    enum phema_status status = candidate_open(&opened[0], candidates, newest[0], options, err);
    if (!status)
        status = candidate_open(&opened[1], candidates, newest[1], options, err);
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
    bool average_first = span_begins_with(*raw, *average);
    for (unsigned i = 0; i < 2; i++) {
        bool is_raw = average_first ? i == 1 : i == 0;
        const struct phema_span *prefix = is_raw ? raw : average;
        size_t inner_size = size;
        const char *inner = twin_name_behind(name, &inner_size, *prefix);
        if (!inner)
            continue;
        bool is_name = is_plain(*average) && strcmp((const char *)average->data, "raw.") != 0;
        const char *key = is_name ? (const char *)average->data : "ema.";
        *out = (struct split_name){.set = is_raw ? "raw" : key,
                                   .set_size = is_raw ? 3 : strlen(key) - 1,
                                   .name = inner,
                                   .name_size = inner_size,
                                   .is_raw = is_raw};
        bool is_counter = !is_raw && phema_bytes_are_any(out->name, out->name_size, counters,
                                                         ARRAY_LEN(counters));
        return !is_counter && !is_optimizer_state(name, size);
    }
    return false;
}

/* Whether the average moves towards the raw set, or stands still: moments of gradients do neither. */
static bool comes_after(const struct twin_evidence *evidence, bool is_first)
{
    double moved = evidence->moved[!is_first];
    double late = is_first ? evidence->backward : evidence->forward; /* from the raw set before */
    double product = (moved + evidence->before - late) / 2;
    return moved == 0 ||
           (product > 0 && product * product >= LEAST_TOWARDS * moved * evidence->before);
}

/* is_unclear: they are near each other, and neither names nor data say which is the average */
static bool decide(struct twin_decision *out, bool *is_unclear, const struct twin_pair *pair,
                   bool has_evidence)
{
    bool says_first = says_average(pair->first), says_second = says_average(pair->second);
    if (says_first && span_begins_with(pair->first, pair->second))
        says_second = says_average((struct phema_span){pair->second.data + pair->first.size,
                                                       pair->second.size - pair->first.size});
    const struct twin_evidence *evidence = &out->evidence;
    bool differs = has_evidence && evidence->forward != evidence->backward;
    bool is_named = says_first != says_second;
    double size = evidence->sizes[0] + evidence->sizes[1];
    bool is_near = evidence->apart <= MOST_APART * size;
    bool is_akin = evidence->apart <= MOST_APART_NAMED * size &&
                   evidence->sizes[0] <= MOST_LARGER * evidence->sizes[1] &&
                   evidence->sizes[1] <= MOST_LARGER * evidence->sizes[0];
    bool looks_back = evidence->backward < evidence->forward;
    is_akin = is_akin || comes_after(evidence, says_first) || comes_after(evidence, looks_back);
    *is_unclear = false;
    if (differs && !is_near && !(is_named && is_akin))
        return false;
    out->is_by_data = differs;
    /* The first is the average where it stays nearer to the second's past than the reverse. */
    out->is_first = differs ? looks_back : says_first;
    out->is_still = differs && evidence->moved[!out->is_first] == 0;
    out->contradicts = is_named && says_first != out->is_first;
    double difference = fabs(evidence->forward - evidence->backward);
    bool is_clear = difference >= LEAST_UNNAMED * (evidence->forward + evidence->backward);
    *is_unclear = !is_named && differs && pair->has_most && !is_clear;
    return is_named || (differs && pair->has_half && is_clear);
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
        root, twin_show(&first, pair->first), twin_show(&second, pair->second),
        phema_setting_name(PHEMA_SET_KEY), phema_setting_equals(PHEMA_SET_KEY));
}

/* ---- Data against names ---- */

/* The newest one before a time, of this kind, or of all where kinds is NULL; NULL: none. */
static const struct candidate *find_before(const struct candidate_list *candidates,
                                           const char *const *kinds, const char *kind, double end)
{
    const struct candidate *found = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        bool is_one = kinds ? kinds[i] && strcmp(kinds[i], kind) == 0 : candidate->path != NULL;
        if (is_one && !candidate->is_left_out && candidate->named_time < end &&
            (!found || candidate->named_time > found->named_time))
            found = candidate;
    }
    return found;
}

/* Adds the evidence of the interval that ends with these files, and moves to its begin. */
static enum phema_status
add_interval(struct twin_evidence *evidence, struct candidate_list *candidates,
             const struct candidate *ends[2], const struct candidate *const begins[2],
             const struct twin_pair *pair, const struct phema_checkpoint_options *options,
             struct phema_error *err)
{
    struct phema_checkpoint *opened[4] = {NULL, NULL, NULL, NULL};
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < 4 && !status; i++)
        status =
            candidate_open(&opened[i], candidates, (i % 2 ? ends : begins)[i / 2], options, err);
    if (!status)
        status = twin_evidence_read(evidence, opened, pair, err);
    for (unsigned i = 0; i < 4; i++)
        phema_checkpoint_close(opened[i]);
    ends[0] = begins[0];
    ends[1] = begins[1];
    return status;
}

enum phema_status twins_reconsider(struct twin_decision *decision, const struct twin_pair *pair,
                                   struct candidate_list *candidates, const char *const *kinds,
                                   const char *const kind[2],
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    const struct candidate *ends[2], *begins[2];
    struct twin_evidence *evidence = &decision->evidence;
    enum phema_status status = PHEMA_OK;
    for (unsigned set = 0; set < 2; set++) {
        begins[set] = find_before(candidates, kinds, kind[set], HUGE_VAL);
        ends[set] = begins[set] ? find_before(candidates, kinds, kind[set], begins[set]->named_time)
                                : NULL; /* the newest interval has been read */
    }
    for (unsigned i = 0; i < MOST_INTERVALS && ends[0] && ends[1] && !status; i++) {
        for (unsigned set = 0; set < 2; set++)
            begins[set] = find_before(candidates, kinds, kind[set], ends[set]->named_time);
        if (!begins[0] || !begins[1] || begins[0]->named_time != begins[1]->named_time)
            break;
        status = add_interval(evidence, candidates, ends, begins, pair, options, err);
    }
    double against = evidence->backward - evidence->forward;
    against = decision->is_first ? -against : against;
    if (status || against >= LEAST_AGAINST * (evidence->forward + evidence->backward))
        return status;
    decision->is_first = !decision->is_first;
    decision->is_by_data = decision->contradicts = false;
    decision->is_still = evidence->moved[!decision->is_first] == 0;
    return PHEMA_OK;
}

/* ---- Several pairs ---- */

/* A decision names the first set or the second as the average. */
static struct twin_judged judged_as(const struct twin_pair *pair,
                                    const struct twin_decision *decision)
{
    bool is_first = decision->is_first;
    return (struct twin_judged){.pair = pair,
                                .decision = *decision,
                                .average = is_first ? pair->first : pair->second,
                                .raw = is_first ? pair->second : pair->first};
}

/* Of more sets the raw one is that which all others look back at. */
static enum phema_status reconsider_only(struct twin_judgement *judgement,
                                         struct candidate_list *candidates,
                                         const struct phema_series_options *options,
                                         struct phema_error *err)
{
    struct twin_judged *only = &judgement->items[0];
    const char *const none[2] = {NULL, NULL};
    enum phema_status status = twins_reconsider(&only->decision, only->pair, candidates, NULL, none,
                                                &options->checkpoint, err);
    *only = judged_as(only->pair, &only->decision);
    return status;
}

/* Layers and parts that are alike are no twins. */
static enum phema_status judge(struct twin_judgement *out, struct candidate_list *candidates,
                               const struct phema_series_options *options,
                               const struct phema_checkpoint *checkpoint,
                               const struct twin_pair *pairs, size_t n, struct phema_error *err)
{
    struct phema_checkpoint *opened[2];
    enum phema_status status = open_newest(opened, candidates, &options->checkpoint, err);
    struct phema_checkpoint *const checkpoints[4] = {opened[0], opened[1], opened[0], opened[1]};
    /* a sample of a compressed file takes as long as all of it: names decide there */
    bool is_readable = !status && opened[1] && !phema_checkpoint_is_compressed(opened[0]) &&
                       !phema_checkpoint_is_compressed(opened[1]);
    *out = (struct twin_judgement){.n = 0};
    for (size_t i = 0; i < n && !status; i++) {
        struct twin_decision decision = {.is_first = false};
        if (is_readable)
            status = twin_evidence_read(&decision.evidence, checkpoints, &pairs[i], err);
        bool is_unclear = false;
        bool are_twins = !status && decide(&decision, &is_unclear, &pairs[i], is_readable);
        bool are_layers = twin_pair_is_of_layers(&pairs[i], checkpoint);
        bool are_averages = twin_pair_says_averages(&pairs[i]) && !are_layers;
        twins_judge(out, &pairs[i], &decision, are_twins && !are_averages);
        if ((are_twins || is_unclear) && are_averages && !out->averages)
            out->averages = &pairs[i];
        if (is_unclear && !out->unclear && !are_layers)
            out->unclear = &pairs[i];
    }
    phema_checkpoint_close(opened[0]);
    phema_checkpoint_close(opened[1]);
    return status || out->n != 1 || !out->items[0].decision.contradicts
               ? status
               : reconsider_only(out, candidates, options, err);
}

void twins_judge(struct twin_judgement *judgement, const struct twin_pair *pair,
                 const struct twin_decision *decision, bool are_twins)
{
    const struct twin_judged judged = judged_as(pair, decision);
    judgement->all[judgement->n_all++] = judged;
    if (are_twins)
        judgement->items[judgement->n++] = judged;
}

/* ---- The pair of a checkpoint ---- */

static bool is_of_averages(const struct twin_judgement *judgement,
                           const struct phema_tensor *tensor)
{
    for (size_t i = 0; i < judgement->n; i++) {
        size_t rest = tensor->name_size;
        if (twin_name_behind(tensor->name, &rest, judgement->items[i].average))
            return true;
    }
    return false;
}

/* A parameter that stands beside the raw set below one parent, so that the set is a fragment of a
 * model; NULL: none. Averages of that set are no part of the model. */
static const struct phema_tensor *find_sibling(const struct phema_checkpoint *checkpoint,
                                               const struct twin_judgement *judgement)
{
    const struct twin_judged *judged = &judgement->items[0];
    size_t size = judged->raw.size ? judged->raw.size - 1 : 0; /* without the dot */
    while (size && judged->raw.data[size - 1] != '.')
        size--;
    static const char *const containers[] = {"state_dict.", "state_dict.module."};
    const struct phema_span parent = {judged->raw.data, size};
    for (size_t i = 0; i < ARRAY_LEN(containers); i++)
        if (size >= strlen(containers[i]) && memcmp(parent.data + size - strlen(containers[i]),
                                                    containers[i], strlen(containers[i])) == 0)
            return NULL; /* of several models */
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint) && size; i++) {
        size_t rest[2] = {tensors[i].name_size, tensors[i].name_size};
        if (twin_is_parameter(&tensors[i]) && twin_name_behind(tensors[i].name, &rest[0], parent) &&
            !twin_name_behind(tensors[i].name, &rest[1], judged->raw) &&
            !is_of_averages(judgement, &tensors[i]))
            return &tensors[i];
    }
    return NULL;
}

static enum phema_status check_whole(const struct candidate_list *candidates,
                                     const struct twin_judgement *judgement, const char *root,
                                     const struct phema_checkpoint *checkpoint,
                                     struct phema_error *err)
{
    const struct twin_judged *judged = &judgement->items[0];
    const struct phema_tensor *sibling = find_sibling(checkpoint, judgement);
    struct phema_name_buffer raw, average, beside;
    if (!sibling)
        return PHEMA_OK;
    (void)phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: '%s' is the average of '%s' alone, and other parameters of the model, such as '%s', "
        "have none; %s%s takes one set, %s. all",
        root, twin_show(&average, judged->average), twin_show(&raw, judged->raw),
        phema_name_escape(&beside, sibling->name, sibling->name_size),
        phema_setting_equals(PHEMA_SET_KEY), average.text, phema_setting_equals(PHEMA_SET_KEY));
    return candidates->asks_for_raw ? phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_KEY, ".")
                                    : PHEMA_ERR_INPUTS;
}

static enum phema_status choose_pair(struct twin_judgement *judgement,
                                     const struct candidate_list *candidates,
                                     const struct phema_series_options *options,
                                     const struct phema_checkpoint *checkpoint,
                                     struct phema_error *err)
{
    const char *root = options->snapshots;
    bool needs_none = candidates->asks_for_raw || options->needs_no_profiles;
    if (judgement->n == 0 && judgement->averages && !needs_none)
        return twins_fail_averages(root, judgement->averages->first, judgement->averages->second,
                                   PHEMA_SET_KEY, err);
    if (judgement->n == 0)
        return judgement->unclear && !needs_none ? fail_unclear(root, judgement->unclear, err)
                                                 : PHEMA_OK;
    enum phema_status status = twins_select(judgement, candidates, options, PHEMA_SET_KEY, err);
    return status || options->needs_no_profiles
               ? status
               : check_whole(candidates, judgement, root, checkpoint, err);
}

/* Never half of a file without a word. */
static void note_others(struct candidate_list *candidates, const struct twins *twins,
                        const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint), *first = NULL;
    struct phema_name_buffer shown;
    struct split_name ignored;
    size_t n = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        if (!twin_is_parameter(&tensors[i]) ||
            twins_split(&ignored, twins, tensors[i].name, tensors[i].name_size))
            continue;
        first = first ? first : &tensors[i];
        n++;
    }
    if (n)
        candidates_note(candidates, "left out: %zu tensor%s beside these sets, such as '%s' (%s.)",
                        n, n == 1 ? "" : "s",
                        phema_name_escape(&shown, first->name, first->name_size),
                        phema_setting_equals(PHEMA_SET_KEY));
}

/* Takes the chosen pair, and says so. */
static enum phema_status take(const struct twins **out, struct candidate_list *candidates,
                              const struct twin_judged *chosen,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct phema_name_buffer raw, average;
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++)
        n += !candidates->items[i].is_left_out;
    *out = make_twins(candidates->arena, chosen->pair, chosen->decision.is_first);
    if (!*out)
        return phema_fail_memory(err);
    note_others(candidates, *out, checkpoint);
    return twins_tell(candidates, &chosen->decision, n, twin_show(&raw, chosen->raw),
                      twin_show(&average, chosen->average), err);
}

/* Keeps the key of an average for the command that comes next, where there are several. */
static enum phema_status propose_key(struct candidate_list *candidates,
                                     const struct twin_judgement *judgement,
                                     struct phema_error *err)
{
    struct phema_name_buffer first, second;
    const struct twin_pair *averages = judgement->n ? NULL : judgement->averages;
    struct phema_span key = averages ? averages->first : judgement->items[0].average;
    if (!averages && (!judgement->n || !key.size || !twins_second(judgement).data))
        return PHEMA_OK;
    candidates->key_to_choose =
        phema_arena_copy(candidates->arena, (const char *)key.data, key.size - 1);
    if (averages)
        candidates->sets_note = phema_arena_printf(
            candidates->arena, "sets: '%s' and '%s' are both averages of one model, by their names",
            twin_show(&first, averages->first), twin_show(&second, averages->second));
    return candidates->key_to_choose && (!averages || candidates->sets_note)
               ? PHEMA_OK
               : phema_fail_memory(err);
}

enum phema_status twins_find(const struct twins **out, struct candidate_list *candidates,
                             const struct phema_series_options *options,
                             const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct twin_pair pairs[MOST_PAIRS];
    struct twin_judgement judgement = {.n = 0};
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out &&
            (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma) || candidate->spec))
            return PHEMA_OK; /* something says already which average the file is */
    }
    enum phema_status status = twin_pairs_find(pairs, &n, candidates->arena, checkpoint, err);
    if (!status && n)
        status = judge(&judgement, candidates, options, checkpoint, pairs, n, err);
    if (!status && n)
        status = choose_pair(&judgement, candidates, options, checkpoint, err);
    if (!status && options->needs_no_profiles)
        status = propose_key(candidates, &judgement, err);
    if (!status && judgement.n)
        status = take(out, candidates, &judgement.items[0], checkpoint, err);
    return status;
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
        pair.n_shared +=
            twin_is_parameter(tensor) && twin && twin_shapes_compare(tensor, twin) == 0;
    }
    for (size_t i = 0; i < phema_checkpoint_n_tensors(b); i++)
        n_second += twin_is_parameter(&phema_checkpoint_tensors(b)[i]);
    *are_twins = false;
    *decision = (struct twin_decision){.n_shared = pair.n_shared};
    if (pair.n_shared == 0 || 5 * pair.n_shared < 4 * (n_first < n_second ? n_first : n_second))
        return PHEMA_OK;
    enum phema_status status = twin_evidence_read(&decision->evidence, checkpoints, &pair, err);
    if (status)
        return status;
    const struct twin_pair names = {.first = {(const uint8_t *)first, strlen(first)},
                                    .second = {(const uint8_t *)second, strlen(second)},
                                    .has_half = true,
                                    .has_most = true};
    bool is_unclear = false; /* then the file that is named as the model is taken, if any */
    *are_twins = decide(decision, &is_unclear, &names, true);
    return PHEMA_OK;
}
