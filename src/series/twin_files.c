// SPDX-License-Identifier: Apache-2.0
/* twin_files.c - several checkpoint files of one time: a folder with the model beside its average or
 * the state of a training, and names like x.ckpt and x-EMA.ckpt. Files of one kind have the same
 * path but for the digits. Of two kinds with the same tensors, the data say which is the average. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/path.h"
#include "phema/setting.h"
#include "twin_kinds.h"
#include "twins.h"

/* ---- Kinds of files ---- */

/* The size of a number at a place in a label, with its decimals and its unit (1.2M). */
static size_t number_size(const char *text)
{
    size_t size = strspn(text, "0123456789");
    size_t decimals = text[size] == '.' ? strspn(text + size + 1, "0123456789") : 0;
    size_t end = decimals ? size + 1 + decimals : size;
    bool has_unit = size && text[end] && strchr("kKmMbBGT", text[end]) &&
                    !isalpha((unsigned char)text[end + 1]);
    return has_unit ? end + 1 : size;
}

/* Whether a place in a label is of the name and not of its time, where other numbers tell names apart. */
static bool is_literal(const struct candidate_list *candidates, const struct candidate *candidate,
                       const char *at)
{
    const char *name = candidates->has_families ? strstr(candidate->label, candidate->base) : NULL;
    const char *base = candidate->base;
    return name && at >= name && at < name + strlen(base) &&
           (const uint8_t *)base + (at - name) != candidate->time_text.data;
}

/* The label with # for each number. */
static const char *kind_of(const struct candidate_list *candidates,
                           const struct candidate *candidate)
{
    char *kind = phema_arena_copy(candidates->arena, candidate->label, strlen(candidate->label));
    size_t n = 0;
    for (const char *at = candidate->label; kind && *at;) {
        size_t size = is_literal(candidates, candidate, at) ? 0 : number_size(at);
        kind[n++] = (char)(size ? '#' : *at);
        at += size ? size : 1;
    }
    if (kind)
        kind[n] = '\0';
    return kind;
}

/* NULL: there is none of this text. */
static struct kind *find_kind(struct kinds *kinds, const char *text)
{
    for (size_t k = 0; k < kinds->n; k++)
        if (strcmp(kinds->items[k].text, text) == 0)
            return &kinds->items[k];
    return NULL;
}

static enum phema_status list_kinds(struct kinds *kinds, const struct candidate_list *candidates,
                                    struct phema_error *err)
{
    *kinds = (struct kinds){
        .of = phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*kinds->of))};
    if (!kinds->of)
        return phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->path || !isnan(candidate->sigma_rel) ||
            !isnan(candidate->gamma) || candidate->spec || candidate->index != UINT64_MAX)
            continue; /* the name says which of several averages it is */
        const char *text = kind_of(candidates, candidate);
        if (!text)
            return phema_fail_memory(err);
        size_t k = 0;
        while (k < kinds->n && strcmp(kinds->items[k].text, text) != 0)
            k++;
        if (k == MOST_KINDS)
            continue;
        kinds->n += k == kinds->n;
        kinds->items[k].text = text;
        kinds->items[k].n++;
        kinds->of[i] = text;
    }
    return PHEMA_OK;
}

/* Folders of the model alone are of the kind of its file, where other folders hold more than it:
 * "checkpoint-50" beside "checkpoint-60/model.safetensors" and "checkpoint-60/vae.safetensors". */
static enum phema_status merge_folders(struct kinds *kinds, const struct candidate_list *candidates,
                                       struct phema_error *err)
{
    for (size_t i = 0; i < candidates->n && kinds->n > 1; i++) {
        const struct candidate *candidate = &candidates->items[i];
        const char *name = kinds->of[i] && phema_path_is_directory(candidate->path)
                               ? phema_folder_own_file(candidates->arena, candidate->path)
                               : NULL;
        const char *text =
            name ? phema_arena_printf(candidates->arena, "%s/%s", kinds->of[i], name) : NULL;
        if (name && !text)
            return phema_fail_memory(err);
        struct kind *file = text ? find_kind(kinds, text) : NULL;
        if (!file)
            continue;
        find_kind(kinds, kinds->of[i])->n--;
        file->n++;
        kinds->of[i] = file->text;
    }
    size_t n = 0;
    for (size_t k = 0; k < kinds->n; k++)
        if (kinds->items[k].n)
            kinds->items[n++] = kinds->items[k];
    kinds->n = n;
    return PHEMA_OK;
}

/* A candidate with its kind, in the order of times, then folders. */
struct entry {
    const struct candidate *candidate;
    const char *kind;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    double earlier = left->candidate->named_time, later = right->candidate->named_time;
    if (earlier < later || earlier > later)
        return earlier < later ? -1 : 1;
    int order = strcmp(left->candidate->base, right->candidate->base);
    return order ? order : strcmp(left->kind, right->kind);
}

/* Whether there are several files of one time. Those of one kind in one folder are parts of one
 * checkpoint, of which nothing says how they were cut. */
static enum phema_status find_equal_times(bool *has_equal, const struct candidate_list *candidates,
                                          const struct kinds *kinds, const char *root,
                                          struct phema_error *err)
{
    size_t n = 0;
    struct entry *entries =
        phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*entries));
    if (!entries)
        return phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i])
            entries[n++] = (struct entry){&candidates->items[i], kinds->of[i]};
    qsort(entries, n, sizeof(*entries), compare_entries);
    *has_equal = false;
    for (size_t i = 1; i < n; i++) {
        const struct candidate *a = entries[i - 1].candidate, *b = entries[i].candidate;
        *has_equal = *has_equal || a->named_time == b->named_time;
        if (compare_entries(&entries[i - 1], &entries[i]) == 0)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: '%s' and '%s' are of one time: parts of a checkpoint, which are "
                              "not put together; save whole ones, or choose with @list",
                              root, a->label, b->label);
    }
    return PHEMA_OK;
}

/* All other kinds than one that is taken.
 *   why  before its name: "beside the model" */
static enum phema_status leave_out_others(struct candidate_list *candidates,
                                          const struct kinds *kinds, const char *why,
                                          const char *taken, struct phema_error *err)
{
    const char *reason = phema_arena_printf(candidates->arena, "%s '%s'", why, taken);
    if (!reason)
        return phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i] && strcmp(kinds->of[i], taken) != 0)
            candidates_leave_out(candidates, &candidates->items[i], reason);
    return PHEMA_OK;
}

bool twin_has_parameters(const struct phema_checkpoint *checkpoint)
{
    size_t n = phema_checkpoint_n_tensors(checkpoint), i = 0;
    while (i < n && !twin_is_parameter(&phema_checkpoint_tensors(checkpoint)[i]))
        i++;
    return i < n;
}

/* Kinds without parameters, such as states of an optimizer or of random numbers, are no model. */
static void leave_out_states(struct candidate_list *candidates, struct kinds *kinds,
                             const struct phema_checkpoint_options *options)
{
    size_t n = 0;
    bool is_state[MOST_KINDS] = {false};
    for (size_t k = 0; k < kinds->n; k++) {
        const struct candidate *newest[2];
        struct phema_checkpoint *checkpoint = NULL;
        struct phema_error ignored = {0}; /* what cannot be read is told later */
        (void)twins_find_newest(newest, candidates, kinds->of, kinds->items[k].text);
        if (newest[1] && !phema_checkpoint_open(&checkpoint, newest[1]->path, options, &ignored))
            is_state[k] = !twin_has_parameters(checkpoint);
        phema_checkpoint_close(checkpoint);
        n += is_state[k];
    }
    if (n == kinds->n)
        return;
    for (size_t i = 0; i < candidates->n; i++)
        for (size_t k = 0; k < kinds->n && kinds->of[i]; k++)
            if (is_state[k] && strcmp(kinds->of[i], kinds->items[k].text) == 0) {
                candidates_leave_out(candidates, &candidates->items[i], "without parameters");
                kinds->of[i] = NULL;
            }
    n = 0;
    for (size_t k = 0; k < kinds->n; k++)
        if (!is_state[k])
            kinds->items[n++] = kinds->items[k];
    kinds->n = n;
}

/* Names that libraries give the model of a folder, or its index. */
static bool names_model(const char *kind)
{
    static const char *const names[] = {"model.safetensors", "pytorch_model.bin",
                                        "diffusion_pytorch_model.safetensors",
                                        "adapter_model.safetensors"};
    const char *slash = strrchr(kind, '/'), *extension = NULL;
    if (!slash)
        return false;
    const struct phema_format_info *format =
        phema_format_from_path(&extension, slash + 1, PHEMA_NAMES_CHECKPOINT);
    size_t size = strlen(slash + 1) - (format && format->is_index ? strlen(extension) : 0);
    return phema_bytes_are_any(slash + 1, size, names, ARRAY_LEN(names));
}

/* Whether a file of a kind is of a time. */
static bool has_time(const struct candidate_list *candidates, const struct kinds *kinds,
                     const char *text, double named_time)
{
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i] && strcmp(kinds->of[i], text) == 0 &&
            candidates->items[i].named_time == named_time)
            return true;
    return false;
}

/* Whether a kind is the folder that all others lie in: its own file is the checkpoint. */
static bool holds_others(const struct candidate_list *candidates, const struct kinds *kinds,
                         const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i] && !has_time(candidates, kinds, text, candidates->items[i].named_time))
            return false;
    for (size_t k = 0; k < kinds->n; k++) {
        const char *other = kinds->items[k].text;
        if (other != text && (strncmp(other, text, size) != 0 || other[size] != '/'))
            return false;
    }
    return true;
}

/* Whether two kinds have the same values: a model in two formats. */
static bool are_equal(const struct twin_judgement *judgement, const char *a, const char *b)
{
    for (size_t i = 0; i < judgement->n_all; i++) {
        const struct twin_judged *judged = &judgement->all[i];
        const struct twin_evidence *evidence = &judged->decision.evidence;
        const struct phema_span first = phema_span_of(a), second = phema_span_of(b);
        if ((phema_spans_compare(judged->pair->first, first) == 0 &&
             phema_spans_compare(judged->pair->second, second) == 0) ||
            (phema_spans_compare(judged->pair->first, second) == 0 &&
             phema_spans_compare(judged->pair->second, first) == 0))
            return evidence->apart == 0 && evidence->sizes[0] > 0;
    }
    return false;
}

/* ---- Which family ---- */

static struct phema_checkpoint *open_newest(const struct candidate_list *candidates,
                                            const struct kinds *kinds, const char *text,
                                            const struct phema_checkpoint_options *options)
{
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_error ignored = {0}; /* what cannot be read is told later */
    const struct candidate *newest = NULL;
    for (size_t i = 0; i < candidates->n; i++)
        if (kinds->of[i] && strcmp(kinds->of[i], text) == 0 &&
            (!newest || candidates->items[i].named_time > newest->named_time))
            newest = &candidates->items[i];
    return newest && !phema_checkpoint_open(&checkpoint, newest->path, options, &ignored)
               ? checkpoint
               : NULL;
}

/* Whether a tensor lies below the key that was given, or where none was, in a subtree that is called
 * average. */
static bool has_asked(const struct phema_checkpoint *checkpoint, const char *key)
{
    size_t size = key ? strlen(key) : 0;
    for (size_t i = 0; checkpoint && i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        const char *dot = memchr(tensor->name, '.', tensor->name_size);
        const struct phema_span root = {(const uint8_t *)tensor->name,
                                        dot ? (size_t)(dot - tensor->name) : 0};
        if (key ? tensor->name_size > size && memcmp(tensor->name, key, size) == 0 &&
                      tensor->name[size] == '.'
                : dot && says_average(root))
            return true;
    }
    return false;
}

/* The only kind with what the options ask for: the key, or averages; NULL: none, or several have it. */
static const char *find_asked(const struct candidate_list *candidates, const struct kinds *kinds,
                              const struct phema_series_options *options)
{
    const char *asked = NULL;
    size_t n = 0;
    if (!options->key && (!options->n_input_profiles || candidates->asks_for_raw))
        return NULL;
    for (size_t k = 0; k < kinds->n; k++) {
        struct phema_checkpoint *checkpoint =
            open_newest(candidates, kinds, kinds->items[k].text, &options->checkpoint);
        if (has_asked(checkpoint, options->key)) {
            asked = kinds->items[k].text;
            n++;
        }
        phema_checkpoint_close(checkpoint);
    }
    return n == 1 ? asked : NULL;
}

/* Of kinds that are no twins, the one that is named as a model. */
static enum phema_status choose_model(struct candidate_list *candidates, const struct kinds *kinds,
                                      const struct twin_judgement *judgement,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    const char *model = NULL;
    for (size_t k = 0; k < kinds->n; k++) {
        if (holds_others(candidates, kinds, kinds->items[k].text))
            return leave_out_others(candidates, kinds, "beside the model", kinds->items[k].text,
                                    err);
        if (!names_model(kinds->items[k].text))
            continue;
        if (!model)
            model = kinds->items[k].text;
        else if (!are_equal(judgement, model, kinds->items[k].text))
            model = "";
    }
    if (!model || !*model)
        model = find_asked(candidates, kinds, options);
    if (!model)
        return kinds_fail(candidates, kinds, true, options->snapshots, err);
    return leave_out_others(candidates, kinds, "beside the model", model, err);
}

/* Compares two kinds by their newest files. */
static enum phema_status compare_kinds(struct twin_decision *decision, bool *are_twins,
                                       struct candidate_list *candidates, const struct kinds *kinds,
                                       size_t first, size_t second,
                                       const struct phema_checkpoint_options *options,
                                       struct phema_error *err)
{
    const struct candidate *newest[2][2];
    *are_twins = false;
    *decision = (struct twin_decision){.is_first = false};
    if (!twins_find_newest(newest[0], candidates, kinds->of, kinds->items[first].text) ||
        !twins_find_newest(newest[1], candidates, kinds->of, kinds->items[second].text) ||
        newest[0][1]->named_time != newest[1][1]->named_time ||
        newest[0][0]->named_time != newest[1][0]->named_time)
        return PHEMA_OK;
    struct phema_checkpoint *opened[4] = {NULL, NULL, NULL, NULL};
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < 4 && !status; i++)
        status = candidate_open(&opened[i], candidates, newest[i / 2][i % 2], options, err);
    if (!status)
        status = twins_compare(decision, are_twins, opened, kinds->items[first].text,
                               kinds->items[second].text, err);
    for (unsigned i = 0; i < 4; i++)
        phema_checkpoint_close(opened[i]);
    const char *const both[2] = {kinds->items[first].text, kinds->items[second].text};
    const struct twin_pair whole = {.first = {(const uint8_t *)"", 0},
                                    .second = {(const uint8_t *)"", 0},
                                    .n_shared = decision->n_shared};
    if (!status && *are_twins && decision->contradicts)
        status = twins_reconsider(decision, &whole, candidates, kinds->of, both, options, err);
    return status;
}

static enum phema_status decide(struct candidate_list *candidates, struct kinds *kinds,
                                const struct phema_series_options *options, struct phema_error *err)
{
    struct twin_pair pairs[MOST_JUDGED];
    struct twin_judgement judgement = {.n = 0};
    size_t n_averages = 0; /* pairs of them */
    enum phema_status status = PHEMA_OK;
    leave_out_states(candidates, kinds, &options->checkpoint);
    if (kinds->n == 1)
        return PHEMA_OK;
    for (size_t first = 0; first < kinds->n; first++)
        for (size_t second = 0; second < first && !status; second++) {
            if (names_differ_in_decimals(kinds->items[first].text, kinds->items[second].text)) {
                n_averages++;
                continue;
            }
            struct twin_decision decision;
            struct twin_pair *pair = &pairs[judgement.n_all];
            bool are_twins = false;
            *pair = (struct twin_pair){.first = phema_span_of(kinds->items[first].text),
                                       .second = phema_span_of(kinds->items[second].text)};
            status = compare_kinds(&decision, &are_twins, candidates, kinds, first, second,
                                   &options->checkpoint, err);
            if (!status)
                twins_judge(&judgement, pair, &decision, are_twins);
        }
    if (status)
        return status;
    if (n_averages && 2 * n_averages == kinds->n * (kinds->n - 1))
        return kinds_fail_averages(candidates, kinds, options->snapshots, err);
    if (judgement.n == 0)
        return choose_model(candidates, kinds, &judgement, options, err);
    status = twins_select(&judgement, candidates, options, PHEMA_SET_NAME_REGEX, err);
    const struct twin_judged *chosen = &judgement.items[0];
    if (status == PHEMA_ERR_INPUTS) /* the raw files tell the decay */
        return kinds_suggest(candidates, kinds, (const char *)chosen->average.data,
                             chosen->decision.is_still ? NULL : (const char *)chosen->raw.data,
                             err);
    const struct kind *raw = find_kind(kinds, (const char *)chosen->raw.data);
    const struct kind *average = find_kind(kinds, (const char *)chosen->average.data);
    candidates->leaves_out_raw = !candidates->asks_for_raw;
    if (!status)
        status =
            twins_tell(candidates, &chosen->decision, average->n, raw->text, average->text, err);
    return status ? status
                  : leave_out_others(candidates, kinds, "beside",
                                     (candidates->asks_for_raw ? raw : average)->text, err);
}

enum phema_status twin_files_choose(struct candidate_list *candidates,
                                    const struct phema_series_options *options,
                                    struct phema_error *err)
{
    enum phema_status status = snapshot_folders_expand(candidates, err);
    leave_out_unopened(candidates, options);
    struct kinds kinds = {.n = 0};
    bool has_equal = false;
    if (!status)
        status = list_kinds(&kinds, candidates, err);
    if (!status)
        status = merge_folders(&kinds, candidates, err);
    if (!status)
        status = find_equal_times(&has_equal, candidates, &kinds, options->snapshots, err);
    if (!status && candidates->has_families && !has_equal && kinds.n > 1)
        return kinds_fail(candidates, &kinds, false, options->snapshots, err);
    return !status && has_equal && kinds.n > 1 ? decide(candidates, &kinds, options, err) : status;
}
