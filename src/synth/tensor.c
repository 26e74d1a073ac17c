// SPDX-License-Identifier: Apache-2.0
/* tensor.c - one tensor of one target, made in memory. It is a run of a plan that has nothing else,
 * so that its bytes are those of any run. */
#include <stdlib.h>

#include "run.h"

/* A plan of one tensor and one target: views of the arrays of the whole plan. */
struct excerpt {
    struct phema_plan plan;
    struct phema_target target;
    struct phema_series series;
    struct phema_series_tensor tensor;
    struct phema_snapshot *snapshots; /* [series.n] */
    size_t rule;
    enum phema_dtype dtype;
    struct phema_output output;
    struct phema_outputs outputs;
};

static enum phema_status make_excerpt(struct excerpt *x, const struct phema_plan *plan, size_t j,
                                      size_t i, enum phema_dtype dtype, struct phema_error *err)
{
    static char path[] = "the average"; /* for messages */
    const struct phema_series *series = plan->series;
    *x = (struct excerpt){.plan = *plan,
                          .target = plan->targets[j],
                          .series = *series,
                          .tensor = series->tensors[i],
                          .rule = plan->rule_of[i],
                          .dtype = dtype,
                          .output = {.path = path}};
    x->snapshots = calloc(series->n, sizeof(*x->snapshots));
    if (!x->snapshots)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        x->snapshots[k] = series->snapshots[k];
        x->snapshots[k].locations += i;
    }
    x->tensor.same_as = 0;
    x->series.tensors = &x->tensor;
    x->series.n_tensors = 1;
    x->series.snapshots = x->snapshots;
    x->plan.series = &x->series;
    x->plan.targets = &x->target;
    x->plan.m = 1;
    x->plan.rule_of = &x->rule;
    x->outputs = (struct phema_outputs){.items = &x->output, .m = 1, .dtypes = &x->dtype};
    return PHEMA_OK;
}

static enum phema_status execute(struct run *run, struct phema_error *err)
{
    enum phema_status status = run_prepare(run, err);
    if (status)
        return status;
    status = run_pass(run, 0, err);
    return status ? status : run_check_inputs_unchanged(run, err);
}

PHEMA_FALLIBLE phema_synth_tensor(void *data, const struct phema_plan *plan, size_t j, size_t i,
                                  enum phema_dtype dtype, const struct phema_synth_options *options,
                                  struct phema_error *err)
{
    struct phema_synth_result result = {.nan_tensor = SIZE_MAX};
    struct excerpt excerpt;
    struct run run;
    enum phema_status status = make_excerpt(&excerpt, plan, j, i, dtype, err);
    if (status)
        return status;
    run_init(&run, &excerpt.plan, &excerpt.outputs, options, &result);
    run.memory = data;
    if (excerpt.tensor.tensor.n_elems)
        status = execute(&run, err);
    run_clear(&run);
    free(excerpt.snapshots);
    return status;
}
