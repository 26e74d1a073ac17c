// SPDX-License-Identifier: Apache-2.0
/* regimes.c - the table of all regimes. */
#include "regimes.h"

#include <stdio.h>

#include "phema/span.h"
#include "schedules.h"
#include "synthetic.h"
#include "training.h"

#define TUNING   SET_TUNING
#define HELD_OUT SET_HELD_OUT

const struct regime regimes[] = {
    /* clang-format off */
    {"white",               TUNING,   true,  &simulation_white, NULL, NULL, EVENT_NONE, 1},
    {"walk",                TUNING,   false, &simulation_walk,  NULL, NULL, EVENT_NONE, 1},
    {"drift",               TUNING,   true,  &simulation_drift, NULL, NULL, EVENT_NONE, 1},
    {"drop",                TUNING,   false, &simulation_drop,  NULL, NULL, EVENT_NONE, 1},
    {"mixed",               TUNING,   false, &simulation_mixed, NULL, NULL, EVENT_NONE, 1},
    {"denoiser-root",       TUNING,   false, NULL, &task_denoiser,   &schedule_root,     EVENT_NONE,  7},
    {"denoiser-onecycle",   TUNING,   false, NULL, &task_denoiser,   &schedule_onecycle, EVENT_NONE,  7},
    {"regression-onecycle", TUNING,   false, NULL, &task_regression, &schedule_onecycle, EVENT_NONE,  7},
    {"language-onecycle",   TUNING,   false, NULL, &task_language,   &schedule_onecycle, EVENT_NONE,  7},
    {"regression-constant", TUNING,   false, NULL, &task_regression, &schedule_constant, EVENT_NONE,  7},
    {"regression-cosine",   TUNING,   false, NULL, &task_regression, &schedule_cosine,   EVENT_NONE,  7},
    {"classifier-tenth",    TUNING,   true,  NULL, &task_classifier, &schedule_tenth,    EVENT_NONE,  7},
    {"classifier-linear",   TUNING,   false, NULL, &task_classifier, &schedule_linear,   EVENT_NONE,  7},
    {"classifier-spike",    TUNING,   false, NULL, &task_classifier, &schedule_tenth,    EVENT_SPIKE, 7},
    {"language-wsd",        TUNING,   false, NULL, &task_language,   &schedule_wsd,      EVENT_NONE,  7},
    {"language-restarts",   TUNING,   false, NULL, &task_language,   &schedule_restarts, EVENT_NONE,  7},

    {"fall",                HELD_OUT, true,  &simulation_fall,  NULL, NULL, EVENT_NONE, 2},
    {"denoiser-cosine",     HELD_OUT, false, NULL, &task_denoiser,   &schedule_cosine,   EVENT_NONE,  11},
    {"denoiser-restarts",   HELD_OUT, false, NULL, &task_denoiser,   &schedule_restarts, EVENT_NONE,  12},
    {"denoiser-thaw",       HELD_OUT, false, NULL, &task_denoiser,   &schedule_root,     EVENT_THAW,  13},
    {"regression-linear",   HELD_OUT, false, NULL, &task_regression, &schedule_linear,   EVENT_NONE,  14},
    {"regression-wsd",      HELD_OUT, false, NULL, &task_regression, &schedule_wsd,      EVENT_NONE,  15},
    {"classifier-onecycle", HELD_OUT, false, NULL, &task_classifier, &schedule_onecycle, EVENT_NONE,  16},
    {"classifier-reset",    HELD_OUT, true,  NULL, &task_classifier, &schedule_constant, EVENT_RESET, 17},
    {"classifier-resumed",  HELD_OUT, false, NULL, &task_classifier, &schedule_constant, EVENT_TOLD_RESET, 17},
    {"language-linear",     HELD_OUT, false, NULL, &task_language,   &schedule_linear,   EVENT_NONE,  18},
    {"language-tenth",      HELD_OUT, false, NULL, &task_language,   &schedule_tenth,    EVENT_NONE,  19},
    {"attention-cosine",    HELD_OUT, true,  NULL, &task_attention,  &schedule_cosine,   EVENT_NONE,  20},
    {"attention-wsd",       HELD_OUT, false, NULL, &task_attention,  &schedule_wsd,      EVENT_NONE,  21},
    {"attention-onecycle",  HELD_OUT, false, NULL, &task_attention,  &schedule_onecycle, EVENT_NONE,  22},
    {"attention-spike",     HELD_OUT, false, NULL, &task_attention,  &schedule_root,     EVENT_SPIKE, 23},
    /* clang-format on */
};
const size_t n_regimes = ARRAY_LEN(regimes);

static const char *const event_texts[] = {
    [EVENT_NONE] = "",
    [EVENT_SPIKE] = "; a loss spike at half-time",
    [EVENT_THAW] = "; half of the parameters frozen until half-time",
    [EVENT_RESET] = "; the averages restart at 40 %",
    [EVENT_TOLD_RESET] = "; the averages restart at 40 %, and the labels say so",
};

void regime_print(const struct regime *regime)
{
    if (regime->simulation)
        printf("%s", regime->simulation->what);
    else
        printf("%s, %s", regime->task->what, regime->schedule->what);
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
