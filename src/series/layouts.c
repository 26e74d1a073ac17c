// SPDX-License-Identifier: Apache-2.0
/* layouts.c - table of known trainers (docs/layouts.md). */
#include "candidates.h"

#include <math.h>
#include <string.h>

/* EDM2 names files by kimg, rounded down from a whole number of batches of 1024 images or a
 * multiple: training/training_loop.py saves every snapshot_nimg images, a multiple of 1024. */
static double images_from_kimg(double kimg)
{
    return floor((kimg * 1000 + 999) / 1024) * 1024;
}

double phema_series_clock(const struct phema_series *series, double named_time)
{
    double time = named_time + series->time_offset;
    return series->clock ? series->clock(time) : time - series->named_ahead;
}

const struct layout layout_own = {
    .name = "own",
    .pattern = "^(?<prefix>.*)-(?<time>[0-9]+(?:\\.[0-9]+)?)-(?<sigma>[0-9]+\\.[0-9]+)"
               "(?:\\.safetensors(?:\\.zst)?)?$",
    .unit = "steps",
    .is_tried = true,
};

const struct layout layout_edm2 = {
    .name = "edm2",
    .pattern = "^(?:(?<state>training-state)|(?<prefix>.*))-(?<time>[0-9]{7,})"
               "(?(<state>)\\.pt|-(?<sigma>[0-9]+\\.[0-9]{3})\\.(?:pkl|safetensors))$",
    .unit = "images",
    .clock = images_from_kimg,
    .subtree = "ema", /* next to an encoder and settings */
    .counter = "state.cur_nimg",
    .counts_per_time = 1000,
    .is_tried = true,
    .names_say_all = true,
    .state = "training-state-",
};

const struct layout layout_ema_pytorch = {
    .name = "ema-pytorch",
    .library = "ema-pytorch",
    .pattern = "^(?<index>[0-9]+)\\.(?<time>[0-9]+)\\.pt$",
    .unit = "steps",
    .subtree = "ema_model",
    .is_labelled_only = true,
    .is_tried = true,
    .default_update_every = 100,
    .default_sigmas = "0.05,0.28",
};

const struct layout layout_posthoc_ema = {
    .name = "posthoc-ema",
    .library = "pytorch-posthoc-ema",
    .pattern = "^(?<index>[0-9]+)\\.(?<time>[0-9]+)\\.pt$",
    .unit = "steps",
    .is_labelled_only = true,
    .has_step_inside = true,
    .usual_ahead = 99,
    .default_update_every = 10,
    .default_sigmas = "0.05,0.28",
};

/* ModelCheckpoint of Lightning: metrics may follow the step, and a version if the file existed. */
const struct layout layout_lightning = {
    .name = "lightning",
    .pattern = "^(?:.*[-_])?step=(?<time>[0-9]+)(?:[-_].*)?\\.ckpt$",
    .unit = "steps",
    .counter = "global_step",
    .counts_per_time = 1,
    .is_tried = true,
    .is_plain = true,
    .may_be_raw = true,
};

/* Directories of the Trainer of transformers. */
const struct layout layout_hf = {
    .name = "hf",
    .pattern = "^checkpoint-(?<time>[0-9]+)$",
    .unit = "steps",
    .is_tried = true,
    .is_plain = true,
    .names_folders = true,
    .may_be_raw = true,
};

/* ---- Directories of distributed checkpoints; their sets are in trainers.c ---- */

#define STEPS "^step[-_](?<time>[0-9]+)$"

/* Recognised by the averages inside. */
const struct layout layout_torchtitan = {
    .name = "torchtitan",
    .pattern = "^step-(?<time>[0-9]+)$",
    .unit = "steps",
    .counter = "train_state.step",
    .counts_per_time = 1,
    .may_be_raw = true,
};

const struct layout layout_flux_action = {
    .name = "flux-action",
    .pattern = STEPS,
    .unit = "steps",
    .mark = {"state.json", "COMPLETE"},
    .last = "COMPLETE",
};

/* A directory, or one file. Other ranks keep averages of other widths, with a postfix before
 * .pt. */
const struct layout layout_cosmos = {
    .name = "cosmos",
    .pattern = "^iter_(?<time>[0-9]{9})(?:\\.pt)?$",
    .unit = "steps",
    .counter = "iteration",
    .counts_per_time = 1,
    .is_tried = true,
    .is_plain = true,
};

const struct layout layout_megatron = {
    .name = "megatron",
    .pattern = "^iter_(?<time>[0-9]{7})$",
    .unit = "steps",
    .is_tried = true,
    .is_plain = true,
    .names_folders = true,
    .may_be_raw = true,
};

/* EDM2's names for the averages of other models, saved by torch.save; times are steps. */
const struct layout layout_edm2_pt = {
    .name = "edm2-pt",
    .pattern = "^(?<prefix>phema)-(?<time>[0-9]{7,})-(?<sigma>[0-9]+\\.[0-9]{3})\\.pt$",
    .unit = "steps",
    .subtree = "structure_module",
    .is_tried = true,
};

/* Of mirai, with the averages inside. */
const struct layout layout_mirai = {
    .name = "mirai",
    .pattern = "^step_(?<time>[0-9]{8,})\\.pt$",
    .unit = "steps",
    .counter = "step",
    .counts_per_time = 1,
    .is_tried = true,
};

/* Directories of training scripts of PyTorch, such as those of torch_checkpointing, which count in
 * an item 'step'. */
const struct layout layout_steps = {
    .name = "steps",
    .pattern = STEPS,
    .unit = "steps",
    .counter = "step",
    .counts_per_time = 1,
    .is_tried = true,
    .is_plain = true,
    .names_folders = true,
    .may_be_raw = true,
};

const struct layout layout_manifest = {.name = "manifest", .unit = "steps"};

/* --name-regex without a layout */
const struct layout layout_custom = {
    .name = "names", .unit = "steps", .names_folders = true, .may_be_raw = true};

/* Of two that fit as many names the first is taken. */
const struct layout *const layouts[] = {&layout_own,         &layout_edm2,      &layout_ema_pytorch,
                                        &layout_posthoc_ema, &layout_lightning, &layout_hf,
                                        &layout_torchtitan,  &layout_cosmos,    &layout_flux_action,
                                        &layout_megatron,    &layout_edm2_pt,   &layout_mirai,
                                        &layout_steps,       &layout_manifest,  NULL};

const char phema_series_layouts[] = "auto|own|edm2|edm2-pt|ema-pytorch|posthoc-ema|"
                                    "lightning|hf|torchtitan|cosmos|flux-action|"
                                    "megatron|mirai|steps|manifest";

const struct layout *layout_find(const char *name)
{
    for (size_t i = 0; layouts[i]; i++)
        if (strcmp(layouts[i]->name, name) == 0)
            return layouts[i];
    return NULL;
}

bool layout_names_state(const struct layout *layout, const char *base)
{
    return layout->state && strncmp(base, layout->state, strlen(layout->state)) == 0;
}
