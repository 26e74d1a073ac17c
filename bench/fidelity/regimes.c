// SPDX-License-Identifier: Apache-2.0
/* regimes.c - the table of all regimes. */
#include "regimes.h"

#include <stdio.h>

#include "optimizers.h"
#include "phema/span.h"
#include "schedules.h"
#include "synthetic.h"
#include "training.h"

#define TUNING         SET_TUNING
#define HELD_OUT       SET_HELD_OUT
#define LATER_TUNING   SET_LATER_TUNING
#define LATER_HELD_OUT SET_LATER_HELD_OUT

const struct regime regimes[] = {
    /* clang-format off */
    {"white",               TUNING,   true,  &simulation_white, NULL, NULL, NULL, EVENT_NONE, 1},
    {"walk",                TUNING,   false, &simulation_walk,  NULL, NULL, NULL, EVENT_NONE, 1},
    {"drift",               TUNING,   true,  &simulation_drift, NULL, NULL, NULL, EVENT_NONE, 1},
    {"drop",                TUNING,   false, &simulation_drop,  NULL, NULL, NULL, EVENT_NONE, 1},
    {"mixed",               TUNING,   false, &simulation_mixed, NULL, NULL, NULL, EVENT_NONE, 1},
    {"denoiser-root",       TUNING,   false, NULL, &task_denoiser,   &schedule_root,     NULL, EVENT_NONE,  7},
    {"denoiser-onecycle",   TUNING,   false, NULL, &task_denoiser,   &schedule_onecycle, NULL, EVENT_NONE,  7},
    {"regression-onecycle", TUNING,   false, NULL, &task_regression, &schedule_onecycle, NULL, EVENT_NONE,  7},
    {"language-onecycle",   TUNING,   false, NULL, &task_language,   &schedule_onecycle, NULL, EVENT_NONE,  7},
    {"regression-constant", TUNING,   false, NULL, &task_regression, &schedule_constant, NULL, EVENT_NONE,  7},
    {"regression-cosine",   TUNING,   false, NULL, &task_regression, &schedule_cosine,   NULL, EVENT_NONE,  7},
    {"classifier-tenth",    TUNING,   true,  NULL, &task_classifier, &schedule_tenth,    NULL, EVENT_NONE,  7},
    {"classifier-linear",   TUNING,   false, NULL, &task_classifier, &schedule_linear,   NULL, EVENT_NONE,  7},
    {"classifier-spike",    TUNING,   false, NULL, &task_classifier, &schedule_tenth,    NULL, EVENT_SPIKE, 7},
    {"language-wsd",        TUNING,   false, NULL, &task_language,   &schedule_wsd,      NULL, EVENT_NONE,  7},
    {"language-restarts",   TUNING,   false, NULL, &task_language,   &schedule_restarts, NULL, EVENT_NONE,  7},

    {"fall",                HELD_OUT, true,  &simulation_fall,  NULL, NULL, NULL, EVENT_NONE, 2},
    {"denoiser-cosine",     HELD_OUT, false, NULL, &task_denoiser,   &schedule_cosine,   NULL, EVENT_NONE,  11},
    {"denoiser-restarts",   HELD_OUT, false, NULL, &task_denoiser,   &schedule_restarts, NULL, EVENT_NONE,  12},
    {"denoiser-thaw",       HELD_OUT, false, NULL, &task_denoiser,   &schedule_root,     NULL, EVENT_THAW,  13},
    {"regression-linear",   HELD_OUT, false, NULL, &task_regression, &schedule_linear,   NULL, EVENT_NONE,  14},
    {"regression-wsd",      HELD_OUT, false, NULL, &task_regression, &schedule_wsd,      NULL, EVENT_NONE,  15},
    {"classifier-onecycle", HELD_OUT, false, NULL, &task_classifier, &schedule_onecycle, NULL, EVENT_NONE,  16},
    {"classifier-reset",    HELD_OUT, true,  NULL, &task_classifier, &schedule_constant, NULL, EVENT_RESET, 17},
    {"classifier-resumed",  HELD_OUT, false, NULL, &task_classifier, &schedule_constant, NULL, EVENT_TOLD_RESET, 17},
    {"language-linear",     HELD_OUT, false, NULL, &task_language,   &schedule_linear,   NULL, EVENT_NONE,  18},
    {"language-tenth",      HELD_OUT, false, NULL, &task_language,   &schedule_tenth,    NULL, EVENT_NONE,  19},
    {"attention-cosine",    HELD_OUT, true,  NULL, &task_attention,  &schedule_cosine,   NULL, EVENT_NONE,  20},
    {"attention-wsd",       HELD_OUT, false, NULL, &task_attention,  &schedule_wsd,      NULL, EVENT_NONE,  21},
    {"attention-onecycle",  HELD_OUT, false, NULL, &task_attention,  &schedule_onecycle, NULL, EVENT_NONE,  22},
    {"attention-spike",     HELD_OUT, false, NULL, &task_attention,  &schedule_root,     NULL, EVENT_SPIKE, 23},

    {"denoiser-muon",           LATER_TUNING,   false, NULL, &task_denoiser,    &schedule_wsd,         &optimizer_muon,         EVENT_NONE,        31},
    {"classifier-soap",         LATER_TUNING,   false, NULL, &task_classifier,  &schedule_cosine,      &optimizer_soap,         EVENT_NONE,        32},
    {"regression-lion",         LATER_TUNING,   false, NULL, &task_regression,  &schedule_tenth,       &optimizer_lion,         EVENT_NONE,        33},
    {"flow-constant",           LATER_TUNING,   false, NULL, &task_flow,        &schedule_constant,    NULL,                    EVENT_NONE,        34},
    {"flow-bf16",               LATER_TUNING,   false, NULL, &task_flow,        &schedule_cosine,      NULL,                    EVENT_BFLOAT16,    35},
    {"language-stage",          LATER_TUNING,   false, NULL, &task_language,    &schedule_rewarmed,    NULL,                    EVENT_STAGE,       36},
    {"classifier-batches",      LATER_TUNING,   false, NULL, &task_classifier,  &schedule_wsd,         NULL,                    EVENT_BATCHES,     37},
    {"denoiser-mixture",        LATER_TUNING,   false, NULL, &task_denoiser,    &schedule_cosine,      NULL,                    EVENT_MIXTURE,     38},
    {"regression-steps",        LATER_TUNING,   false, NULL, &task_regression,  &schedule_steps,       NULL,                    EVENT_NONE,        39},
    {"regression-targets",      LATER_TUNING,   false, NULL, &task_regression,  &schedule_constant,    &optimizer_adam,         EVENT_TARGETS,     40},
    {"denoiser-full",         LATER_TUNING,   false, NULL, &task_denoiser,  &schedule_cosine,    &optimizer_adam,         EVENT_FULL_BATCH,  41},
    {"denoiser-free",           LATER_TUNING,   false, NULL, &task_denoiser,    &schedule_constant,    &optimizer_schedule_free, EVENT_NONE,        42},

    {"language-muon",           LATER_HELD_OUT, false, NULL, &task_language,    &schedule_cosine,      &optimizer_muon,         EVENT_NONE,        51},
    {"denoiser-soap",           LATER_HELD_OUT, false, NULL, &task_denoiser,    &schedule_tenth,       &optimizer_soap,         EVENT_NONE,        52},
    {"classifier-lion",         LATER_HELD_OUT, false, NULL, &task_classifier,  &schedule_wsd,         &optimizer_lion,         EVENT_NONE,        53},
    {"flow-root",               LATER_HELD_OUT, false, NULL, &task_flow,        &schedule_root,        NULL,                    EVENT_NONE,        54},
    {"attention-bf16",          LATER_HELD_OUT, false, NULL, &task_attention,   &schedule_tenth,       NULL,                    EVENT_BFLOAT16,    55},
    {"flow-stage",              LATER_HELD_OUT, false, NULL, &task_flow,        &schedule_rewarmed,    NULL,                    EVENT_STAGE,       56},
    {"language-batches",        LATER_HELD_OUT, false, NULL, &task_language,    &schedule_constant,    NULL,                    EVENT_BATCHES,     57},
    {"attention-mixture",       LATER_HELD_OUT, false, NULL, &task_attention,   &schedule_wsd,         NULL,                    EVENT_MIXTURE,     58},
    {"classifier-steps",        LATER_HELD_OUT, false, NULL, &task_classifier,  &schedule_steps,       &optimizer_sgd,          EVENT_NONE,        59},
    {"denoiser-targets",        LATER_HELD_OUT, false, NULL, &task_denoiser,    &schedule_root,        NULL,                    EVENT_TARGETS,     60},
    {"regression-full",         LATER_HELD_OUT, false, NULL, &task_regression,  &schedule_linear,      &optimizer_sgd,          EVENT_FULL_BATCH,  61},
    {"language-free",           LATER_HELD_OUT, false, NULL, &task_language,    &schedule_constant,    &optimizer_schedule_free, EVENT_FULL_BATCH,  62},
    /* clang-format on */
};
const size_t n_regimes = ARRAY_LEN(regimes);

static const char *const event_texts[] = {
    [EVENT_NONE] = "",
    [EVENT_SPIKE] = "; a loss spike at half-time",
    [EVENT_THAW] = "; half of the parameters frozen until half-time",
    [EVENT_RESET] = "; the averages restart at 40 %",
    [EVENT_TOLD_RESET] = "; the averages restart at 40 %, and the labels say so",
    [EVENT_STAGE] = "; other data from 60 % on",
    [EVENT_MIXTURE] = "; a mixture of data that changes at 33 and 70 %",
    [EVENT_TARGETS] = "; other data in each twelfth",
    [EVENT_BATCHES] = "; batches grow to 4 and 16 times their size",
    [EVENT_FULL_BATCH] = "; one batch, without noise",
    [EVENT_BFLOAT16] = "; parameters in bfloat16",
};

bool event_is_sudden(enum event event)
{
    return event > EVENT_NONE && event <= EVENT_TOLD_RESET;
}

void regime_print(const struct regime *regime)
{
    if (regime->simulation)
        printf("%s", regime->simulation->what);
    else
        printf("%s, %s", regime->task->what, regime->schedule->what);
    if (regime->optimizer)
        printf(", %s", regime->optimizer->what);
    printf("%s", event_texts[regime->event]);
}

bool movement_start(struct movement *movement, const struct regime *regime, uint64_t n_steps)
{
    *movement = (struct movement){.regime = regime, .n_steps = n_steps};
    return regime->simulation ? simulation_start(movement) : training_start(movement);
}

void movement_step(struct movement *movement, uint64_t step)
{
    if (movement->regime->simulation)
        simulation_step(movement, step);
    else
        training_step(movement, step);
}

void movement_end(struct movement *movement)
{
    if (movement->regime->simulation)
        simulation_end(movement);
    else
        training_end(movement);
    *movement = (struct movement){0};
}
