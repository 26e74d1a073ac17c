// SPDX-License-Identifier: Apache-2.0
/* design_lines.c - the lines that make a trainer store a design. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* Lines of trainers, in which $words are replaced as fill_template does. */
static const char edm2[] =
    "train_edm2.py --duration=$until --snapshot=$interval ...\n"
    "training/training_loop.py:\n"
    "    ema_kwargs = dict(class_name='training.phema.PowerFunctionEMA', stds=[$widths])\n";

static const char ema_pytorch[] =
    "from ema_pytorch import PostHocEMA\n"
    "ema = PostHocEMA(model, sigma_rels=($widths), update_every=1,\n"
    "    checkpoint_every_num_steps=$interval, checkpoint_folder='ckpts',\n"
    "    checkpoint_dtype=$dtype)\n"
    "ema.update()  # after every step of the optimizer\n"
    "# ema.checkpoint() after the last one, where it is no multiple\n"
    "# later: posthoc-ema synth --update-every 1 --input-sigma $list ... ckpts\n";

static const char posthoc_ema[] =
    "from posthoc_ema import PostHocEMA\n"
    "ema = PostHocEMA.from_model(model, 'ckpts', sigma_rels=($tuple), update_every=1,\n"
    "    update_after_step=0, checkpoint_every=$interval, max_checkpoints=$times)\n"
    "ema.update_(model)  # after every step of the optimizer\n"
    "# later: posthoc-ema synth --update-every 1 --input-sigma $list ... ckpts\n";

static const char torchtitan[] =
    "# in the function that returns the Trainer.Config of the run\n"
    "from torchtitan.components.optim.ema import EMA\n"
    "config.checkpointer.interval = $interval\n"
    "config.checkpointer.keep_latest_k = 0  # all of them, not the last 10\n"
    "config.checkpointer.last_save_model_only = False  # or the last one has no average\n"
    "config.optim.ema = EMA.Config(half_life_fractions=[$fractions], update_every_n_steps=1)\n"
    "# later: posthoc-ema synth ... checkpoint\n";

static const char lightning[] =
    "from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint\n"
    "callbacks = [EMAWeightAveraging(decay=$decay, update_every_n_steps=1),\n"
    "    ModelCheckpoint(every_n_train_steps=$interval, save_top_k=-1)]\n"
    "# later: posthoc-ema synth --input-profile lightning:decay=$decay ... checkpoints\n";

/* Of averages; raw parameters are left out. */
static void write_widths(struct phema_strbuf *out, const struct phema_design *design,
                         const char *separator, bool as_fractions)
{
    for (size_t k = 0; k < design->n_widths; k++) {
        const struct phema_design_width *width = &design->widths[k];
        if (width->profile.shape == PHEMA_SHAPE_RAW)
            continue;
        phema_strbuf_puts(out, k ? separator : "");
        if (as_fractions) /* of a half-life: the exponent is ln 2/f - 1 (docs/numerics.md) */
            phema_strbuf_printf(out, "%.5g", M_LN2 / (width->profile.gamma + 1));
        else
            phema_strbuf_printf(out, "%.9g", width->sigma_rel);
    }
}

static void write_word(struct phema_strbuf *out, const char *word, size_t size,
                       const struct phema_design *design, double until)
{
    enum phema_dtype dtype = design->widths[0].dtype;
#define IS(name) (size == sizeof(name) - 1 && memcmp(word, name, size) == 0)
    if (IS("until"))
        phema_strbuf_printf(out, "%.0f", until);
    else if (IS("interval"))
        phema_strbuf_printf(out, "%.0f", design->times[0]);
    else if (IS("times"))
        phema_strbuf_printf(out, "%zu", design->n_times);
    else if (IS("dtype"))
        phema_strbuf_puts(out, dtype == PHEMA_F16    ? "torch.float16"
                               : dtype == PHEMA_BF16 ? "torch.bfloat16"
                                                     : "torch.float32");
    else if (IS("decay"))
        phema_strbuf_printf(out, "%.9g", exp(-M_LN2 / design->widths[0].profile.half_life));
    else
        write_widths(out, design, IS("list") ? "," : ", ", IS("fractions"));
    if (IS("tuple") && design->n_widths == 1)
        phema_strbuf_puts(out, ",");
#undef IS
}

static void fill_template(struct phema_strbuf *out, const char *text,
                          const struct phema_design *design, double until)
{
    while (*text) {
        size_t size = strcspn(text, "$");
        phema_strbuf_append(out, text, size);
        text += size;
        if (!*text)
            return;
        size = strspn(++text, "abcdefghijklmnopqrstuvwxyz");
        write_word(out, text, size, design, until);
        text += size;
    }
}

/* ---- A loop of one's own ---- */

/* Strings of JSON are those of Python. */
static void write_string(struct phema_strbuf *out, const char *text)
{
    struct phema_json_out json = {.text = out};
    phema_json_out_string(&json, NULL, text);
}

#define LINE_LENGTH 100

/* "times = {...}", a set of Python in lines of a length that an editor shows. */
static void write_times(struct phema_strbuf *out, const struct phema_design *design)
{
    size_t start = out->size;
    phema_strbuf_puts(out, "times = {");
    for (size_t i = 0; i < design->n_times; i++) {
        char number[32];
        int length = snprintf(number, sizeof(number), "%.17g", design->times[i]);
        if (out->size - start + (size_t)length + 1 > LINE_LENGTH) {
            start = out->size + 1;
            phema_strbuf_puts(out, "\n    ");
        }
        phema_strbuf_printf(out, "%s%s", number, i + 1 < design->n_times ? "," : "}\n");
    }
}

bool design_is_even(const struct phema_design *design)
{
    for (size_t i = 0; i < design->n_times; i++)
        if (design->times[i] != design->times[0] * (double)(i + 1))
            return false;
    return true;
}

static const char *conversion(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16 ? ".half()" : dtype == PHEMA_BF16 ? ".bfloat16()" : "";
}

/* Four decimals are the widths themselves. */
static bool has_short_widths(const struct phema_design *design)
{
    for (size_t k = 0; k < design->n_widths; k++) {
        double rounded = round(design->widths[k].sigma_rel * 1e4) / 1e4;
        if (fabs(rounded - design->widths[k].sigma_rel) > 1e-12)
            return false;
    }
    return true;
}

/* How a step becomes a time, where the design does not count steps. The times are those that a step
 * reaches or passes, also in a training that is resumed. */
static void write_clock(struct phema_strbuf *out, const char *unit)
{
    bool is_kimg = strcmp(unit, "kimg") == 0;
    const char *counted = is_kimg ? "images" : unit;
    phema_strbuf_printf(out,
                        "%s_per_step = ...  # set it: of all processes together\n"
                        "def now(step): return step * %s_per_step%s  # %s\n",
                        counted, counted, is_kimg ? " / 1000" : "", unit);
}

/* Averages start as what the first step leaves: beta is 0 there (N4b). */
static void write_loop(struct phema_strbuf *out, const struct phema_design *design,
                       const struct design_answer *answer)
{
    const char *file = answer->asked->wishes->output, *unit = answer->asked->unit;
    bool counts_steps = strcmp(unit, "steps") == 0;
    size_t n = design->n_widths;
    if (file && counts_steps) {
        phema_strbuf_puts(out, "# the same from Python's posthocema: "
                               "posthocema.torch.Recorder(model, dir='.', design=");
        write_string(out, file);
        phema_strbuf_puts(out, ")\n");
    }
    phema_strbuf_printf(out, "%sfrom safetensors.torch import save_file\n",
                        file ? "import json\n" : "");
    if (!counts_steps)
        write_clock(out, unit);
    if (file) {
        phema_strbuf_puts(out, "with open(");
        write_string(out, file);
        phema_strbuf_puts(out, ") as f: times = set(json.load(f)['times'])\n");
    } else if (design_is_even(design)) {
        phema_strbuf_printf(out, "times = range(%.0f, %.0f, %.0f)\n", design->times[0],
                            design->times[design->n_times - 1] + 1, design->times[0]);
    } else {
        write_times(out, design);
    }
    phema_strbuf_puts(out, "widths = [");
    for (size_t k = 0; k < n; k++)
        phema_strbuf_printf(out, "%s(%.9g, %.17g)", k ? ", " : "", design->widths[k].sigma_rel,
                            design->widths[k].profile.gamma);
    phema_strbuf_printf(
        out,
        "]\n"
        "emas = [{k: p.detach().float().clone() for k, p in model.named_parameters()} for _ in "
        "widths]\n"
        "def record(step):  # after each step of the optimizer; step = 1, 2, ...\n"
        "    for ema, (sigma, gamma) in zip(emas, widths):\n"
        "        for k, p in model.named_parameters():\n"
        "            ema[k].lerp_(p.detach().float(), 1 - (1 - 1 / step) ** (gamma + 1))\n"
        "    if %s: store(step)\n"
        "def store(step):  # after the last step, too, where the training ends at another time\n"
        "    for ema, (sigma, gamma) in zip(emas, widths):\n"
        "        save_file({k: e%s.contiguous() for k, e in ema.items()},\n",
        counts_steps ? "step in times" : "any(now(step - 1) < t <= now(step) for t in times)",
        conversion(design->widths[0].dtype));
    phema_strbuf_printf(out, "                  f'snapshot-{%s}-{sigma%s}.safetensors'",
                        counts_steps                ? "step:07d"
                        : strcmp(unit, "kimg") == 0 ? "now(step):011.3f"
                                                    : "now(step):010.0f",
                        has_short_widths(design) ? ":.4f" : "");
    if (!counts_steps)
        phema_strbuf_printf(out, ", {'posthoc_ema.unit': '%s'}", unit);
    phema_strbuf_puts(out, ")\n");
}

void design_write_lines(struct phema_strbuf *out, const struct design_answer *answer,
                        const struct phema_design *design)
{
    static const char *const templates[] = {NULL,        edm2,       ema_pytorch,
                                            posthoc_ema, torchtitan, lightning};
    const struct design_wishes *wishes = answer->asked->wishes;
    if (answer->asked->is_deleted) /* it runs already, and only saves at other times */
        write_times(out, design);
    else if (templates[wishes->trainer])
        fill_template(out, templates[wishes->trainer], design, answer->asked->question.until);
    else
        write_loop(out, design, answer);
}
