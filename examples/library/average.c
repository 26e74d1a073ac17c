/* SPDX-License-Identifier: Apache-2.0 */
/* average.c - an average of a directory of snapshots, by the library.
 *   cc average.c $(pkg-config --cflags --libs posthoc-ema) -o average
 *   ./average ckpts 0.1 out.safetensors */
#include <locale.h>
#include <posthoc-ema.h>
#include <stdio.h>
#include <stdlib.h>

static int show_progress(void *context, const struct posthoc_ema_progress *progress)
{
    (void)context;
    fprintf(stderr, "%3.0f %% of %llu bytes read\n",
            100.0 * (double)progress->done_bytes / (double)progress->total_bytes,
            (unsigned long long)progress->total_bytes);
    return 0; /* anything else would stop the run */
}

int main(int argc, char **argv)
{
    struct posthoc_ema_error error;
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_plan *plan = NULL;
    enum posthoc_ema_status status;
    double sigma_rel;

    if (argc != 4) {
        fprintf(stderr, "usage: average SNAPSHOTS SIGMA_REL OUT\n");
        return 2;
    }
    sigma_rel = strtod(argv[2], NULL);
    setlocale(LC_ALL, ""); /* as programs do; files are written the same in any */
    status = posthoc_ema_series_open(&series, argv[1], NULL, &error);
    if (!status) {
        struct posthoc_ema_plan_options options = {
            .size = sizeof(options), .sigma_rels = &sigma_rel, .n_sigma_rels = 1};
        status = posthoc_ema_plan_make(&plan, series, &options, &error);
    }
    if (!status) {
        struct posthoc_ema_target target = {.size = sizeof(target)};
        status = posthoc_ema_plan_target(plan, 0, &target, &error);
        if (!status)
            printf("the average will be off by %.1e of all parameters\n", target.predicted_error);
    }
    if (!status) {
        struct posthoc_ema_run_options options = {.size = sizeof(options),
                                                  .progress = show_progress};
        status = posthoc_ema_run(plan, argv[3], &options, NULL, &error);
    }
    if (status)
        fprintf(stderr, "average: %s\n", error.message);
    else
        printf("%s\n", posthoc_ema_output(plan, 0));
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
    return (int)status;
}
