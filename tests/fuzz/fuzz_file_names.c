// SPDX-License-Identifier: Apache-2.0
/* fuzz_file_names.c - The bytes as a list of paths, one per line. Times and widths are read with
 * the recognised layout, and with one that the length of the input selects. No file is opened. */
#include "phema/series.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "candidates.h"
#include "fuzz.h"

static bool is_unknown_or_amount(double value)
{
    return isnan(value) || (isfinite(value) && value >= 0);
}

static void check_candidate(const struct candidate *candidate)
{
    const char *base = candidate->base;
    fuzz_require(candidate->path && candidate->label && base, "candidates have names");
    fuzz_require(!strchr(base, '/') || strspn(base, "/") == strlen(base),
                 "the last component has no slash");
    fuzz_require(is_unknown_or_amount(candidate->named_time), "times are amounts");
    fuzz_require(is_unknown_or_amount(candidate->sigma_rel), "widths are amounts");
    fuzz_require(isnan(candidate->gamma), "no name says a gamma");
    fuzz_require(isfinite(candidate->sigma_slack) && candidate->sigma_slack >= 0, "slack is small");
    fuzz_require(candidate->index == UINT64_MAX || candidate->index < 1000000000, "indices");
    const uint8_t *prefix = candidate->prefix.data, *start = (const uint8_t *)base;
    fuzz_require(!prefix || (prefix >= start && candidate->prefix.size <= strlen(base) &&
                             prefix + candidate->prefix.size <= start + strlen(base)),
                 "prefixes are part of the name");
}

static void check_scan(const struct candidate_list *scan, const char *layout, size_t n_lines)
{
    fuzz_require(scan->n <= n_lines, "no more candidates than lines");
    fuzz_require(scan->layout != NULL, "some layout is chosen");
    fuzz_require(!layout || strcmp(scan->layout->name, layout) == 0, "the layout asked for");
    for (size_t i = 0; i < scan->n; i++) {
        check_candidate(&scan->items[i]);
        fuzz_require(scan->items[i].is_left_out || !isnan(scan->items[i].named_time) ||
                         scan->layout == &layout_own,
                     "what is kept says its time, or may do so inside");
    }
    const struct phema_strbuf *notes = &scan->notes;
    fuzz_require(notes->size == 0 || notes->data[notes->size - 1] == '\0', "notes are ended");
    fuzz_require(notes->size == 0 || !memchr(notes->data, '\n', notes->size),
                 "notes are one line each");
}

static void read_names(const char *operand, const char *layout, size_t n_lines)
{
    struct phema_arena arena = {0};
    struct candidate_list scan = {.arena = &arena, .specs = {.arena = &arena}};
    struct phema_series_options options = {.snapshots = operand, .layout = layout};
    struct phema_error err = {0};
    enum phema_status status = discover_snapshots(&scan, &options, &err);
    bool is_refused = layout && strcmp(layout, "manifest") == 0;
    if (status == PHEMA_OK) {
        fuzz_require(!is_refused, "a list is no manifest");
        check_scan(&scan, layout, n_lines);
    } else if (!is_refused) {
        fuzz_require_message(&err, operand + 1);
    }
    phema_strbuf_clear(&scan.notes);
    phema_strbuf_clear(&scan.warnings);
    phema_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"own",       "edm2", "ema-pytorch", "posthoc-ema",
                                        "lightning", "hf",   "manifest"};
    size_t n_lines = 1;
    for (size_t i = 0; i < size; i++)
        n_lines += data[i] == '\n';
    char operand[4096];
    (void)snprintf(operand, sizeof(operand), "@%s", fuzz_store("list.txt", data, size));
    read_names(operand, NULL, n_lines);
    read_names(operand, names[size % ARRAY_LEN(names)], n_lines);
    return 0;
}
