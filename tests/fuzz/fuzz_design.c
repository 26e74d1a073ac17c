// SPDX-License-Identifier: Apache-2.0
/* fuzz_design.c - The bytes as a file of design -o, which gen and inspect read. */
#include <math.h>

#include "fuzz.h"
#include "phema/design_question.h"

static void check_design(const struct design_read *design)
{
    fuzz_require(isfinite(design->until) && design->until >= 1, "the training has an end");
    fuzz_require(design->n_times > 0, "snapshots are stored");
    for (size_t i = 0; i < design->n_times; i++)
        fuzz_require(design->times[i] > (i ? design->times[i - 1] : 0) &&
                         (double)design->times[i] <= design->until,
                     "times ascend up to the end");
    fuzz_require(design->n + (design->ema != NULL) <= PHEMA_DESIGN_MAX_WIDTHS, "averages are few");
    fuzz_require(design->n > 0 || design->ema || design->has_raw, "something is stored");
    for (size_t k = 0; k < design->n; k++)
        fuzz_require(design->sigma_rels[k] > 0 && design->sigma_rels[k] < 0.3, "widths exist");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_store("design.json", data, size);
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct design_read design;
    if (design_read_file(&design, &arena, path, &err))
        fuzz_require_message(&err, path);
    else
        check_design(&design);
    phema_arena_clear(&arena);
    return 0;
}
