// SPDX-License-Identifier: Apache-2.0
/* gen.c - processor time of gen, beside that of a simulation that takes every step of the training with
 * the same averages and writes nothing. The target bench_gen.
 *   bench_gen DIR [PARAMETERS]    PARAMETERS: default 1000000; DIR/run is made anew
 * Prints a table in Markdown: seconds of all threads, and their ratio. */
#include "phema/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "train.h"

enum { ROUNDS = 3, RUN = 8192 };

static const double widths[] = {0.05, 0.1}, truths[] = {0.15};

static double processor_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void stop_at(enum phema_status status, const struct phema_error *err)
{
    if (!status)
        return;
    (void)fprintf(stderr, "bench_gen: %s\n", err->message);
    exit(1);
}

/* Two cheap noises of one parameter at one step: sums of two uniform numbers. */
static void draw(double *first, double *second, uint64_t key, uint64_t param)
{
    uint64_t bits = key ^ (param + 1) * 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccd;
    bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53;
    bits ^= bits >> 33;
    *first = (double)((int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff) - 65535);
    *second = (double)((int32_t)(bits >> 32 & 0xffff) + (int32_t)(bits >> 48) - 65535);
}

static void average(double *restrict average, const double *restrict parameters, double beta)
{
    double rest = 1 - beta;
    for (size_t i = 0; i < RUN; i++)
        average[i] = beta * average[i] + rest * parameters[i];
}

/* rows: walk, parameters, averages; RUN numbers each. */
static void simulate(const struct gen_training *training, uint64_t steps, uint64_t first,
                     double *rows)
{
    double *walk = rows, *parameters = rows + RUN;
    memset(rows, 0, (training->n_averages + 2) * RUN * sizeof(*rows));
    for (uint64_t step = 1; step <= steps; step++) {
        for (size_t i = 0; i < RUN; i++) {
            double motion, jitter;
            draw(&motion, &jitter, step * 0xff51afd7ed558ccd, first + i);
            walk[i] = walk[i] + training->walk_sizes[step] * motion;
            parameters[i] = walk[i] + training->jitter_size * jitter;
        }
        for (size_t j = 0; j < training->n_averages; j++)
            average(parameters + (j + 1) * RUN, parameters,
                    training->averages[j].betas[step - training->averages[j].first]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench_gen DIR [PARAMETERS]\n");
        return 2;
    }
    struct phema_gen_options options = {.count = 16,
                                        .steps = 4096,
                                        .snapshots = {widths, ARRAY_LEN(widths), NULL, 0},
                                        .truths = {truths, ARRAY_LEN(truths), NULL, 0},
                                        .dtype = PHEMA_F16,
                                        .truth_dtype = PHEMA_F32,
                                        .n_tensors = 8,
                                        .n_params =
                                            argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000,
                                        .update_every = 1,
                                        .n_threads = 1,
                                        .replaces = true};
    struct phema_error err = {0};
    struct gen_request request;
    struct gen_training training;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/run", argv[1]);
    stop_at(gen_request_init(&request, &options, &err), &err);
    stop_at(gen_training_init(&training, &options, request.averages, request.n_averages,
                              request.stops, request.n_stops, &err),
            &err);
    double *rows = aligned_alloc(64, (training.n_averages + 2) * RUN * sizeof(*rows));
    if (!rows)
        return 1;
    (void)printf("| parameters | gen, s | every step, s | ratio |\n|--:|--:|--:|--:|\n");
    for (int round = 0; round < ROUNDS; round++) {
        double begin = processor_s();
        stop_at(phema_gen(path, &options, &err), &err);
        double middle = processor_s();
        for (uint64_t first = 0; first < options.n_params; first += RUN)
            simulate(&training, options.steps, first, rows);
        double gen_s = middle - begin, steps_s = processor_s() - middle;
        (void)printf("| %llu | %.3f | %.2f | %.1f |\n", (unsigned long long)options.n_params, gen_s,
                     steps_s, steps_s / gen_s);
    }
    free(rows);
    gen_training_clear(&training);
    gen_request_clear(&request);
    return 0;
}
