// SPDX-License-Identifier: Apache-2.0
/* design.c - how good designs are: errors of simulated trainings that store them against the
 * predicted ones, designs against all choices of a grid, and against the usual choices. All in
 * memory, the same figures on every run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fidelity/random.h"
#include "phema/design.h"

#define N_TARGETS 9
#define N_ELEMS   2048
#define MAX_ENDS  3

static const char *const motions[PHEMA_N_MOVING] = {"walk", "white", "drift", "fall"};
static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_F32};

/* ---- Questions ---- */

struct asked {
    struct phema_profile targets[N_TARGETS];
    double sigma_rels[N_TARGETS], ends[MAX_ENDS];
    struct phema_design_question question;
};

static void fail(const struct phema_error *err)
{
    (void)fprintf(stderr, "bench_design: %s\n", err->message);
    exit(1);
}

static void set_targets(struct asked *asked, double lowest, double highest)
{
    struct phema_error err = {0};
    for (size_t i = 0; i < N_TARGETS; i++) {
        asked->sigma_rels[i] = lowest * pow(highest / lowest, (double)i / (N_TARGETS - 1));
        asked->targets[i] = (struct phema_profile){0};
        if (phema_gamma_from_sigma_rel(&asked->targets[i].gamma, asked->sigma_rels[i], &err))
            fail(&err);
    }
    asked->question.targets = asked->targets;
    asked->question.n_targets = N_TARGETS;
}

/* Widths from 0.015 to 0.28, 1 to 3 ends, a disk of some snapshots in 16 bits, any motion. */
static void draw(struct asked *asked, uint64_t *state, uint64_t most_halves)
{
    *asked = (struct asked){.question = {.model_elems = 1000,
                                         .least_widths = 1,
                                         .most_widths = 3,
                                         .dtypes = dtypes,
                                         .n_dtypes = 2}};
    double lowest = 0.015 * pow(8, random_unit(state));
    double highest = fmin(lowest * (1.2 + 8 * random_unit(state)), 0.28);
    struct phema_design_question *question = &asked->question;
    set_targets(asked, lowest, highest);
    question->until = floor(1000 + 3000 * random_unit(state));
    question->n_ends = 1 + (size_t)(MAX_ENDS * random_unit(state));
    for (size_t e = 0; e < question->n_ends; e++)
        asked->ends[e] = floor(question->until * (double)(e + 1) / (double)question->n_ends);
    asked->ends[question->n_ends - 1] = question->until;
    question->ends = asked->ends;
    uint64_t halves = question->n_ends + 2 +
                      (uint64_t)((double)(most_halves - question->n_ends) * random_unit(state));
    question->disk_bytes = 2000 * halves;
    question->motion.moving = (enum phema_design_moving)(PHEMA_N_MOVING * random_unit(state));
}

/* ---- A training that stores a design ---- */

struct training {
    const struct asked *asked;
    const struct phema_design *design;
    double *values; /* [snapshots x N_ELEMS] by time, then by width */
    double *truths; /* [n_ends x N_TARGETS x N_ELEMS] */
};

static double rounded(double x, enum phema_dtype dtype)
{
    if (dtype == PHEMA_F32 || x == 0)
        return (double)(float)x;
    int exponent = ilogb(x) > -14 ? ilogb(x) : -14;
    return ldexp(rint(ldexp(x, 10 - exponent)), exponent - 10);
}

/* Trainers keep averages in float32; the exact ones are in float64. */
static void train(struct training *training, uint64_t seed)
{
    const struct phema_design_question *question = &training->asked->question;
    const struct phema_design *design = training->design;
    size_t steps = (size_t)question->until, n_widths = design->n_widths;
    for (size_t e = 0; e < N_ELEMS; e++) {
        uint64_t state = seed * N_ELEMS + e;
        double place = random_normal(&state), exact[N_TARGETS] = {0};
        float kept[PHEMA_DESIGN_MAX_WIDTHS + 1] = {0};
        size_t time = 0, end = 0;
        for (size_t step = 1; step <= steps; step++) {
            double wander, jitter, t = (double)step;
            phema_design_rates(&wander, &jitter, &question->motion, question->until, t - 0.5);
            place += sqrt(wander) * random_normal(&state);
            double x = place + sqrt(jitter) * random_normal(&state), log_left = log1p(-1 / t);
            for (size_t k = 0; k < n_widths; k++)
                kept[k] += (float)-expm1((design->widths[k].profile.gamma + 1) * log_left) *
                           ((float)x - kept[k]);
            for (size_t m = 0; m < N_TARGETS; m++)
                exact[m] -=
                    expm1((training->asked->targets[m].gamma + 1) * log_left) * (x - exact[m]);
            if (time < design->n_times && design->times[time] == t) {
                for (size_t k = 0; k < n_widths; k++)
                    training->values[(time * n_widths + k) * N_ELEMS + e] =
                        rounded((double)kept[k], design->widths[k].dtype);
                time++;
            }
            if (end < question->n_ends && question->ends[end] == t) {
                for (size_t m = 0; m < N_TARGETS; m++)
                    training->truths[(end * N_TARGETS + m) * N_ELEMS + e] = exact[m];
                end++;
            }
        }
    }
}

/* ---- Weights as the program finds them ---- */

static double mean_square(const double *x, const double *y)
{
    double sum = 0;
    for (size_t e = 0; e < N_ELEMS; e++)
        sum += y ? (x[e] - y[e]) * (x[e] - y[e]) : x[e] * x[e];
    return sum / N_ELEMS;
}

/* PHEMA_NO: too few snapshots to see a motion */
static enum phema_status see_motion(struct phema_motion *motion,
                                    const struct phema_problem *problem, const double *values,
                                    struct phema_error *err)
{
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    double unit = mean_square(values + (problem->n - 1) * N_ELEMS, NULL);
    enum phema_status status =
        phema_motion_pairs(&pairs, &n_pairs, problem->snapshots, problem->n, err);
    for (size_t p = 0; !status && p < n_pairs; p++)
        pairs[p].square =
            mean_square(values + pairs[p].i * N_ELEMS, values + pairs[p].j * N_ELEMS) / unit;
    const struct phema_sample_rows rows = {
        .values = values, .n_elems = N_ELEMS, .mean_square = unit};
    const struct phema_motion_data data = {.snapshots = problem->snapshots,
                                           .rounding = problem->rounding,
                                           .n = problem->n,
                                           .distances = pairs,
                                           .n_distances = n_pairs,
                                           .sample = &rows};
    if (!status)
        status = phema_motion_fit(motion, &data, PHEMA_MOTION_LIKELIEST, err);
    free(pairs);
    return status;
}

static double worst_at(const struct training *training, struct phema_problem *problem, size_t end)
{
    struct phema_error err = {0};
    struct phema_motion motion = {0};
    struct phema_profile targets[N_TARGETS];
    struct phema_mix mixes[N_TARGETS];
    struct phema_solution solutions[N_TARGETS] = {0};
    double worst = 0, sum[N_ELEMS];
    for (size_t m = 0; m < N_TARGETS; m++) {
        targets[m] = training->asked->targets[m];
        targets[m].t = training->asked->ends[end];
        mixes[m] = (struct phema_mix){.parts = &targets[m], .n_parts = 1};
    }
    problem->targets = mixes;
    problem->m = N_TARGETS;
    enum phema_status status = see_motion(&motion, problem, training->values, &err);
    if (status && status != PHEMA_NO)
        fail(&err);
    problem->motion = status ? NULL : &motion;
    const struct phema_solve_options options = {.metric = status ? PHEMA_METRIC_WALK
                                                                 : PHEMA_METRIC_MOTION};
    if (phema_weights_solve(solutions, problem, &options, &err))
        fail(&err);
    for (size_t m = 0; m < N_TARGETS; m++) {
        const double *truth = training->truths + (end * N_TARGETS + m) * N_ELEMS;
        memset(sum, 0, sizeof(sum));
        for (size_t i = 0; i < problem->n; i++)
            for (size_t e = 0; e < N_ELEMS; e++)
                sum[e] += solutions[m].weights[i] * training->values[i * N_ELEMS + e];
        worst = fmax(worst, sqrt(mean_square(sum, truth) / mean_square(truth, NULL)));
    }
    phema_solutions_clear(solutions, N_TARGETS);
    phema_motion_clear(&motion);
    return worst;
}

/* The worst true error of all targets at all ends. */
static double try_design(const struct asked *asked, const struct phema_design *design,
                         uint64_t seed)
{
    size_t n = design->n_times * design->n_widths, n_ends = asked->question.n_ends;
    struct training training = {asked, design, calloc(n * N_ELEMS, sizeof(double)),
                                calloc(n_ends * N_TARGETS * N_ELEMS, sizeof(double))};
    struct phema_profile *snapshots = calloc(n, sizeof(*snapshots));
    double *rounding = calloc(n, sizeof(*rounding)), worst = 0;
    if (!training.values || !training.truths || !snapshots || !rounding)
        exit(1);
    train(&training, seed);
    for (size_t i = 0; i < n; i++) {
        snapshots[i] = design->widths[i % design->n_widths].profile;
        snapshots[i].t = design->times[i / design->n_widths];
        rounding[i] = phema_dtype_rounding(design->widths[0].dtype);
    }
    for (size_t end = 0; end < n_ends; end++) {
        struct phema_problem problem = {
            .snapshots = snapshots, .rounding = rounding, .run_end = asked->question.until};
        while (problem.n < n && snapshots[problem.n].t <= asked->ends[end])
            problem.n++;
        worst = fmax(worst, worst_at(&training, &problem, end));
    }
    free(training.values);
    free(training.truths);
    free(snapshots);
    free(rounding);
    return worst;
}

static int compare(const void *a, const void *b)
{
    const double *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static bool measure_truth(size_t n)
{
    double *ratios = calloc(n, sizeof(*ratios));
    uint64_t state = 1;
    size_t n_within = 0, n_of[PHEMA_N_MOVING] = {0}, n_within_of[PHEMA_N_MOVING] = {0};
    if (!ratios)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        struct asked asked;
        struct phema_design design;
        struct phema_error err = {0};
        draw(&asked, &state, 80);
        asked.question.targets = asked.targets;
        if (phema_design_find(&design, &asked.question, &err))
            fail(&err);
        ratios[i] = try_design(&asked, &design, i) / design.worst_error;
        bool is_within = ratios[i] > 0.5 && ratios[i] < 2;
        n_within += is_within;
        n_of[asked.question.motion.moving]++;
        n_within_of[asked.question.motion.moving] += is_within;
        phema_design_clear(&design);
        (void)fprintf(stderr, "\r%zu of %zu", i + 1, n);
    }
    (void)fprintf(stderr, "\n");
    qsort(ratios, n, sizeof(*ratios), compare);
    printf(
        "True over predicted worst error of %zu simulated trainings: within a factor 2 in %.1f %%; "
        "5, 50, 95 %% at %.2f, %.2f, %.2f; %.2f to %.2f\n",
        n, 100 * (double)n_within / (double)n, ratios[n / 20], ratios[n / 2],
        ratios[n - 1 - n / 20], ratios[0], ratios[n - 1]);
    for (size_t m = 0; m < PHEMA_N_MOVING; m++)
        printf("  %s: %zu of %zu\n", motions[m], n_within_of[m], n_of[m]);
    free(ratios);
    return (double)n_within >= 0.9 * (double)n;
}

/* ---- Brute force ---- */

#define N_GRID_WIDTHS 12
#define N_GRID_TIMES  12

/* All choices of n_times of the grid, its last one among them, for these widths. */
static double try_times(struct phema_design *design, const struct phema_design_question *question)
{
    size_t at[N_GRID_TIMES], n = design->n_times - 1;
    double best = HUGE_VAL;
    struct phema_error err = {0};
    for (size_t i = 0; i < n; i++)
        at[i] = i;
    for (;;) {
        for (size_t i = 0; i < n; i++)
            design->times[i] = floor(question->until * (double)(at[i] + 1) / N_GRID_TIMES);
        design->times[n] = question->until;
        if (phema_design_rate(design, NULL, question, &err))
            fail(&err);
        best = fmin(best, design->worst_error);
        size_t i = n;
        while (i > 0 && at[i - 1] == N_GRID_TIMES - 1 - (n - i) - 1)
            i--;
        if (i == 0)
            return best;
        for (at[i - 1]++; i < n; i++)
            at[i] = at[i - 1] + 1;
    }
}

static double try_widths(const struct phema_design_question *question, size_t n_widths,
                         enum phema_dtype dtype)
{
    double times[N_GRID_TIMES], best = HUGE_VAL;
    struct phema_design design = {.n_widths = n_widths, .times = times};
    struct phema_error err = {0};
    size_t halves = (size_t)(question->disk_bytes / 2000), per = dtype == PHEMA_F16 ? 1 : 2;
    design.n_times = halves / per / n_widths;
    design.n_times = design.n_times < N_GRID_TIMES ? design.n_times : N_GRID_TIMES;
    if (design.n_times == 0)
        return best;
    size_t at[3] = {0, 1, 2};
    for (;;) {
        for (size_t k = 0; k < n_widths; k++)
            if (phema_design_width_make(&design.widths[k],
                                        0.012 *
                                            pow(0.28 / 0.012, (double)at[k] / (N_GRID_WIDTHS - 1)),
                                        dtype, question, &err))
                fail(&err);
        best = fmin(best, try_times(&design, question));
        size_t k = n_widths;
        while (k > 0 && at[k - 1] == N_GRID_WIDTHS - (n_widths - k) - 1)
            k--;
        if (k == 0)
            return best;
        for (at[k - 1]++; k < n_widths; k++)
            at[k] = at[k - 1] + 1;
    }
}

static bool measure_grid(size_t n)
{
    uint64_t state = 2;
    double worst = 0, mean = 0;
    size_t n_beaten = 0;
    for (size_t i = 0; i < n; i++) {
        struct asked asked;
        struct phema_design design;
        struct phema_error err = {0};
        draw(&asked, &state, 12);
        asked.question.ends = &asked.ends[asked.question.n_ends - 1];
        asked.question.n_ends = 1;
        asked.question.targets = asked.targets;
        if (phema_design_find(&design, &asked.question, &err))
            fail(&err);
        double best = HUGE_VAL;
        for (size_t n_widths = 1; n_widths <= 3; n_widths++)
            for (size_t d = 0; d < 2; d++)
                best = fmin(best, try_widths(&asked.question, n_widths, dtypes[d]));
        double ratio = design.worst_error / best;
        worst = fmax(worst, ratio);
        mean += log(ratio) / (double)n;
        n_beaten += ratio > 1.1;
        phema_design_clear(&design);
        (void)fprintf(stderr, "\r%zu of %zu", i + 1, n);
    }
    (void)fprintf(stderr, "\n");
    printf("Worst error of the plan over the best of a grid of %d widths and %d times, both "
           "dtypes, %zu "
           "questions: mean %.2f, largest %.2f; above 1.1 in %zu\n",
           N_GRID_WIDTHS, N_GRID_TIMES, n, exp(mean), worst, n_beaten);
    return n_beaten == 0;
}

/* ---- Usual choices ---- */

static void print_usual(double lowest, double highest, size_t halves, size_t n_ends)
{
    static const struct {
        const char *name;
        double sigma_rels[2];
    } usual[] = {{"EDM2", {0.05, 0.10}}, {"ema-pytorch", {0.05, 0.28}}};
    struct asked asked = {.question = {.until = 1e6,
                                       .model_elems = 1000,
                                       .least_widths = 1,
                                       .most_widths = 3,
                                       .dtypes = dtypes,
                                       .n_dtypes = 2,
                                       .disk_bytes = 2000 * halves}};
    double ends[16];
    struct phema_design design, theirs;
    struct phema_error err = {0};
    set_targets(&asked, lowest, highest);
    asked.question.targets = asked.targets;
    for (size_t e = 0; e < n_ends; e++)
        ends[e] = 1e6 * (double)(e + 1) / (double)n_ends;
    asked.question.ends = ends;
    asked.question.n_ends = n_ends;
    if (phema_design_find(&design, &asked.question, &err))
        fail(&err);
    printf("| %g to %g | %zu | %zu |", lowest, highest, n_ends, halves);
    for (size_t k = 0; k < design.n_widths; k++)
        printf("%s%g", k ? ", " : " ", design.widths[k].sigma_rel);
    printf(" | %s | %zu | %.1e |", phema_dtype_name(design.widths[0].dtype), design.n_times,
           design.worst_error);
    for (size_t u = 0; u < 2; u++) {
        struct phema_design_width widths[2];
        for (size_t k = 0; k < 2; k++)
            if (phema_design_width_make(&widths[k], usual[u].sigma_rels[k], PHEMA_F16,
                                        &asked.question, &err))
                fail(&err);
        if (phema_design_make_even(&theirs, widths, 2, &asked.question, &err)) {
            printf(" - |");
            continue;
        }
        printf(" %.1e (%.3g) |", theirs.worst_error, theirs.worst_error / design.worst_error);
        phema_design_clear(&theirs);
    }
    printf("\n");
    phema_design_clear(&design);
}

static void measure_usual(void)
{
    static const double ranges[][2] = {
        {0.02, 0.25}, {0.05, 0.1}, {0.05, 0.2}, {0.1, 0.28}, {0.01, 0.05}};
    printf("| widths wanted | ends | disk | widths | dtype | times | error | EDM2 | ema-pytorch |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t r = 0; r < 5; r++)
        for (size_t halves = 8; halves <= 128; halves *= 4)
            print_usual(ranges[r][0], ranges[r][1], halves, 1);
    print_usual(0.02, 0.25, 128, 10);
}

/* ---- A dtype for each width ---- */

#define N_MIXED_WIDTHS 10

/* Best worst errors over a grid of two or three widths at even times: [0] with one dtype, [1] with
 * both. */
static void try_dtypes(double best[2], const struct phema_design_question *question, double lowest)
{
    struct phema_error err = {0};
    best[0] = best[1] = HUGE_VAL;
    for (unsigned chosen = 1; chosen < 1u << N_MIXED_WIDTHS; chosen++) {
        size_t n = (size_t)__builtin_popcount(chosen);
        for (unsigned wide = 0; n >= 2 && n <= 3 && wide < 1u << n; wide++) {
            struct phema_design_width widths[3];
            struct phema_design design;
            size_t k = 0;
            for (size_t i = 0; i < N_MIXED_WIDTHS; i++)
                if (chosen >> i & 1) {
                    double width = lowest * pow(0.28 / lowest, (double)i / (N_MIXED_WIDTHS - 1));
                    if (phema_design_width_make(&widths[k], width, dtypes[wide >> k & 1], question,
                                                &err))
                        fail(&err);
                    k++;
                }
            if (phema_design_make_even(&design, widths, n, question, &err))
                continue; /* the disk is too small */
            bool is_mixed = wide != 0 && wide != (1u << n) - 1;
            best[is_mixed] = fmin(best[is_mixed], design.worst_error);
            phema_design_clear(&design);
        }
    }
}

static void measure_mixed(void)
{
    static const double ranges[][2] = {{0.02, 0.25}, {0.05, 0.1},  {0.05, 0.2},
                                       {0.1, 0.28},  {0.01, 0.05}, {0.015, 0.12}};
    double end = 720720, most = 1; /* divided by all small numbers */
    size_t n = 0, n_won = 0;
    for (size_t r = 0; r < 6; r++)
        for (size_t halves = 8; halves <= 128; halves *= 2)
            for (size_t motion = 0; motion < 2; motion++) {
                struct asked asked = {.question = {.until = end,
                                                   .model_elems = 1000,
                                                   .ends = &end,
                                                   .n_ends = 1,
                                                   .disk_bytes = 2000 * halves}};
                double best[2];
                asked.question.motion.moving = (enum phema_design_moving)motion;
                set_targets(&asked, ranges[r][0], ranges[r][1]);
                try_dtypes(best, &asked.question, 0.8 * ranges[r][0]);
                n_won += best[0] > 1.1 * best[1];
                most = fmax(most, best[0] / best[1]);
                n++;
            }
    printf(
        "A dtype for each width, even times: more than 10 %% better in %zu of %zu questions, %.2f "
        "times at most\n",
        n_won, n, most);
}

int main(int argc, char **argv)
{
    bool is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (argc > 2 || (argc == 2 && !is_quick)) {
        (void)fputs("usage: bench_design [--quick]\nExit status 1: goals are missed.\n", stderr);
        return 2;
    }
    measure_usual();
    measure_mixed();
    bool is_near = measure_truth(is_quick ? 20 : 200);
    bool is_best = measure_grid(is_quick ? 5 : 50);
    return is_near && is_best ? 0 : 1;
}
