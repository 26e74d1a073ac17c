// SPDX-License-Identifier: Apache-2.0
/* listener.c - shows what ops tell while they work: notes, warnings, stages, progress, the plan. */
#include "phema/progress.h"
#include "phema/report.h"

static void note(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    if (!listener->style.is_quiet)
        render_say("%s", sentence);
}

static void detail(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    if (listener->style.is_verbose)
        note(context, sentence);
}

static void warn(void *context, const char *sentence)
{
    const struct render_listener *listener = context;
    render_warn(&listener->style, "%s", sentence);
}

static void stage(void *context, const char *name)
{
    struct render_listener *listener = context;
    if (!name) {
        watch_stop(listener->watch);
        listener->watch = NULL;
    } else if (listener->watch) {
        watch_begin_stage(listener->watch, name);
    } else {
        listener->watch = watch_start(&listener->style, name);
    }
}

static void advance(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct render_listener *listener = context;
    watch_advance(listener->watch, done_bytes, total_bytes);
}

static void begin(void *context, enum phema_kept kept)
{
    struct render_listener *listener = context;
    progress_init(&listener->progress, &listener->style);
    listener->progress.label = listener->label;
    listener->progress.kept = kept;
    progress_set_farewell(&listener->progress, kept == PHEMA_KEEPS_NOTHING ? "nothing was written"
                                               : kept == PHEMA_WRITES_NOTHING
                                                   ? ""
                                                   : "run the same command to continue");
}

static void report(void *context, const struct phema_progress *state)
{
    struct render_listener *listener = context;
    progress_report(&listener->progress, state);
}

static void end(void *context)
{
    struct render_listener *listener = context;
    progress_finish(&listener->progress);
}

static void planned(void *context, const struct phema_request *request,
                    const struct phema_plan *plan)
{
    const struct render_listener *listener = context;
    const struct phema_outputs_options *naming = &request->outputs;
    const struct render_style *style = &listener->style;
    if (request->plan.is_conversion) {
        report_conversion(style, plan->series);
        return;
    }
    bool is_auto = !naming->has_dtype && !naming->keeps_dtypes;
    bool is_bf16 = is_auto && phema_series_n_scaled(plan->series) > 0;
    report_series(style, plan->series, &plan->checks);
    report_plan(style, plan, is_bf16 ? PHEMA_BF16 : naming->dtype, naming->has_dtype || is_bf16,
                !listener->hides_errors);
}

static void named(void *context, const struct phema_request *request,
                  const struct phema_prepared *prepared)
{
    const struct render_listener *listener = context;
    report_into(&listener->style, request->outputs.into, &prepared->outputs);
    report_scaled(&listener->style, prepared->plan->series, &prepared->outputs);
}

void render_listen(struct render_listener *out, const struct render_style *style)
{
    *out = (struct render_listener){.style = *style,
                                    .heard = {.context = out,
                                              .note = note,
                                              .detail = detail,
                                              .warn = warn,
                                              .stage = stage,
                                              .advance = advance,
                                              .begin = begin,
                                              .report = report,
                                              .end = end,
                                              .planned = planned,
                                              .named = named}};
    progress_init(&out->progress, style);
}

PHEMA_FALLIBLE watch_make_plan(struct phema_plan **out, const struct render_style *style,
                               const struct phema_plan_options *options, struct phema_error *err)
{
    struct render_listener listener;
    render_listen(&listener, style);
    return phema_plan_make_heard(out, options, &listener.heard, err);
}
