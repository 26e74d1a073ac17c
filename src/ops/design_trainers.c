// SPDX-License-Identifier: Apache-2.0
/* design_trainers.c - what trainers can store. */
#include "phema/design_question.h"

const struct design_trainer design_trainers[] = {
    {.name = "any", 1, 4, .dtypes = {PHEMA_F16, PHEMA_F32}, .n_dtypes = 2},
    /* the interval of train_edm2.py is a multiple of the batch, 2048 in all presets; pickles are F16,
     * the first ones of image 0, and names have three decimals of a width */
    {"edm2", 1, 4, .is_even = true, .grain = 2048, .n_useless = 1, .width_unit = 1e-3,
     .unit = "images", .dtypes = {PHEMA_F16}, .n_dtypes = 1},
    {"ema-pytorch", 2, 4, .is_even = true, .unit = "steps", .dtypes = {PHEMA_F16, PHEMA_F32},
     .n_dtypes = 2},
    {"posthoc-ema", 1, 4, .is_even = true, .unit = "steps", .dtypes = {PHEMA_F32}, .n_dtypes = 1},
    /* both save all that resumes a training; without the optimizer there is no average either */
    {"torchtitan", 1, 4, .has_raw = true, .is_even = true, .n_states = 2, .unit = "steps",
     .dtypes = {PHEMA_F32}, .n_dtypes = 1},
    {"lightning", 1, 1, PHEMA_SHAPE_EMA, .has_raw = true, .is_even = true, .n_states = 2,
     .unit = "steps", .dtypes = {PHEMA_F32}, .n_dtypes = 1},
};
