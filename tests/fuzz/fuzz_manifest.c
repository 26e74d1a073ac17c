// SPDX-License-Identifier: Apache-2.0
/* fuzz_manifest.c - The bytes as a manifest. A manifest without files is also opened as a series,
 * as in `weights`. */
#include "phema/series.h"
#include <math.h>
#include <string.h>

#include "candidates.h"
#include "fuzz.h"

static bool is_unknown_or_finite(double value)
{
    return isnan(value) || isfinite(value);
}

static bool check_candidates(const struct candidate_list *scan, size_t size)
{
    bool has_files = false;
    fuzz_require(scan->n <= size, "no more snapshots than bytes");
    for (size_t i = 0; i < scan->n; i++) {
        const struct candidate *candidate = &scan->items[i];
        has_files = has_files || candidate->path;
        fuzz_require(candidate->label && candidate->base, "candidates have names");
        fuzz_require(isfinite(candidate->named_time), "every snapshot says its time");
        fuzz_require(is_unknown_or_finite(candidate->sigma_rel) &&
                         is_unknown_or_finite(candidate->gamma),
                     "what JSON says is finite");
        fuzz_require(isnan(candidate->sigma_rel) || isnan(candidate->gamma), "one width, not two");
    }
    return has_files;
}

static void open_series(const char *path)
{
    struct phema_series_options options = {
        .snapshots = path, .from = PHEMA_UNKNOWN, .to = PHEMA_UNKNOWN, .needs_no_tensors = true};
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    if (phema_series_open(&series, &options, &err)) {
        fuzz_require(!series, "outputs change only on success");
        fuzz_require_message(&err, path);
        return;
    }
    fuzz_require(series->n > 0, "a series holds something");
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        fuzz_require(k == 0 || series->snapshots[k - 1].time <= snapshot->time,
                     "snapshots are in the order of time");
        fuzz_require(snapshot->kind && snapshot->spec, "every profile is known");
        fuzz_require(strcmp(snapshot->kind, "power") != 0 ||
                         (isfinite(snapshot->gamma) && snapshot->gamma > -0.5),
                     "every width is known");
    }
    phema_series_close(series);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_store("manifest.json", data, size);
    struct phema_arena arena = {0};
    struct candidate_list scan = {
        .arena = &arena, .specs = {.arena = &arena}, .layout = &layout_manifest};
    struct phema_error err = {0};
    bool has_files = true;
    if (manifest_read(&scan, path, &err))
        fuzz_require_message(&err, path);
    else
        has_files = check_candidates(&scan, size);
    phema_strbuf_clear(&scan.notes);
    phema_strbuf_clear(&scan.warnings);
    phema_arena_clear(&arena);
    if (!has_files)
        open_series(path);
    return 0;
}
