// SPDX-License-Identifier: Apache-2.0
/* part_option.c - --part I/N and --part auto: this process among those that a launcher (srun,
 * mpirun, torchrun) has started, as its environment tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/writer.h"
#include "remedy/remedy.h"
#include "shared_options.h"

/* ---- Launchers ---- */

struct source {
    const char *rank, *size; /* size NULL: PMIx tells it to programs that link it alone */
    bool is_array;           /* of independent jobs, which may do different things */
    bool counts_from_one;
};

/* Kubernetes and PBS do not tell how many jobs an array has: the user does, in PHEMA_PARTS. */
static const struct source sources[] = {
    {.rank = "SLURM_PROCID", .size = "SLURM_NTASKS"},
    {.rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE"},
    {.rank = "PMI_RANK", .size = "PMI_SIZE"},
    {.rank = "FLUX_TASK_RANK", .size = "FLUX_JOB_SIZE"},
    {.rank = "RANK", .size = "WORLD_SIZE"},
    {.rank = "SLURM_ARRAY_TASK_ID", .size = "SLURM_ARRAY_TASK_COUNT", .is_array = true},
    {.rank = "JOB_COMPLETION_INDEX", .size = "PHEMA_PARTS", .is_array = true},
    {.rank = "PBS_ARRAY_INDEX", .size = "PHEMA_PARTS", .is_array = true, .counts_from_one = true},
    {.rank = "PMIX_RANK"},
};

/* What one source says. */
struct place {
    const struct source *source;
    uint64_t rank, size;
};

/* Digits at *at, which moves behind them; more than UINT32_MAX where there are too many. */
static uint64_t read_digits(const char **at)
{
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++)
        value = 10 * value + (uint64_t)(**at - '0');
    return value;
}

/* PHEMA_ERR_USAGE  the variable is not a number */
static enum phema_status read_variable(uint64_t *out, const char *name, struct phema_error *err)
{
    const char *text = getenv(name), *at = text;
    *out = text ? read_digits(&at) : 0;
    if (text && *text && !*at && *out <= UINT32_MAX)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE, "expected a number in %s, found %s%s%s", name,
                      text ? "'" : "nothing", text ? text : "", text ? "'" : "");
}

/* Tasks of an array are numbered as sbatch --array says: 1-8, 0-7, or 10-80:10. */
static enum phema_status place_in_array(struct place *place, struct phema_error *err)
{
    uint64_t first = 0, last = 0, step = 1;
    enum phema_status status = read_variable(&first, "SLURM_ARRAY_TASK_MIN", err);
    if (!status)
        status = read_variable(&last, "SLURM_ARRAY_TASK_MAX", err);
    if (!status && getenv("SLURM_ARRAY_TASK_STEP"))
        status = read_variable(&step, "SLURM_ARRAY_TASK_STEP", err);
    if (status)
        return status;
    bool is_even = step && first <= place->rank && place->rank <= last &&
                   (place->rank - first) % step == 0 && (last - first) / step + 1 == place->size;
    if (!is_even)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "the array has %llu tasks with gaps between %llu and %llu, so that its "
                          "tasks are not parts; submit the whole array again, such as --array=1-8",
                          (unsigned long long)place->size, (unsigned long long)first,
                          (unsigned long long)last);
    place->rank = (place->rank - first) / step;
    return PHEMA_OK;
}

/* A script of sbatch has the variables of a task as well, though no launcher has started it. */
static bool is_present(const struct source *source)
{
    if (source == &sources[0] && getenv("SLURM_JOB_ID") && !getenv("SLURM_STEP_ID"))
        return false;
    return getenv(source->rank) && (!source->size || getenv(source->size));
}

static enum phema_status read_place(struct place *out, const struct source *source,
                                    struct phema_error *err)
{
    *out = (struct place){.source = source};
    enum phema_status status = read_variable(&out->rank, source->rank, err);
    if (!status && source->size)
        status = read_variable(&out->size, source->size, err);
    if (status || !source->size)
        return status;
    if (source->is_array && strcmp(source->size, "PHEMA_PARTS") != 0)
        return place_in_array(out, err);
    uint64_t first = source->counts_from_one;
    if (first <= out->rank && out->rank - first < out->size) {
        out->rank -= first;
        return PHEMA_OK;
    }
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "%s is %llu, which is none of the %llu of %s, counted from %llu",
                      source->rank, (unsigned long long)out->rank, (unsigned long long)out->size,
                      source->size, (unsigned long long)first);
}

/* All sources that are present: places [*n]. */
static enum phema_status read_places(struct place places[ARRAY_LEN(sources)], size_t *n,
                                     struct phema_error *err)
{
    *n = 0;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        enum phema_status status =
            is_present(&sources[i]) ? read_place(&places[*n], &sources[i], err) : PHEMA_NO;
        if (status && status != PHEMA_NO)
            return status;
        *n += !status;
    }
    return PHEMA_OK;
}

/* The launcher of the most processes; NULL: none tells how many there are. A launcher of one
 * process may run below another: srun -n 1 in a task of an array. */
static const struct place *find_largest(const struct place *places, size_t n)
{
    const struct place *largest = NULL;
    for (size_t i = 0; i < n; i++)
        if (places[i].size > (largest ? largest->size : 0))
            largest = &places[i];
    return largest;
}

static bool agrees(const struct place *place, const struct place *largest)
{
    if (place->size == 1 || (!place->source->size && largest->source->is_array))
        return true;
    return place->rank == largest->rank && (!place->source->size || place->size == largest->size);
}

static enum phema_status fail_disagreement(const struct place *a, const struct place *b,
                                           struct phema_error *err)
{
    char size[96] = "";
    if (b->source->size)
        (void)snprintf(size, sizeof(size), " of %s=%llu", b->source->size,
                       (unsigned long long)b->size);
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "--part auto: %s=%llu of %s=%llu disagrees with %s=%llu%s; unset the "
                      "variables that are not meant, or say --part I/N",
                      a->source->rank, (unsigned long long)a->rank, a->source->size,
                      (unsigned long long)a->size, b->source->rank, (unsigned long long)b->rank,
                      size);
}

/* PHEMA_ERR_USAGE: no launcher is known, or two variables disagree. */
static enum phema_status read_launcher(struct place *out, struct phema_error *err)
{
    struct place places[ARRAY_LEN(sources)];
    size_t n = 0;
    enum phema_status status = read_places(places, &n, err);
    if (status)
        return phema_fail_in(err, status, "--part auto");
    const struct place *largest = find_largest(places, n);
    if (!largest) {
        status =
            phema_fail(err, PHEMA_ERR_USAGE,
                       "--part auto: no launcher tells rank and size; start the program with "
                       "srun, mpirun, flux run, torchrun or as an array of Slurm, or of Kubernetes "
                       "or PBS with PHEMA_PARTS, or say --part I/N");
        return phema_error_set_about(err, status, "part"); /* one process needs none */
    }
    for (size_t i = 0; i < n; i++)
        if (!agrees(&places[i], largest))
            return fail_disagreement(largest, &places[i], err);
    if (largest->size > PHEMA_MAX_PARTS)
        return phema_fail(
            err, PHEMA_ERR_USAGE, "--part auto: %s is %llu, and %d parts are the most",
            largest->source->size, (unsigned long long)largest->size, PHEMA_MAX_PARTS);
    *out = *largest;
    return PHEMA_OK;
}

/* The first launcher that says that there are several processes, of which one is this one. */
static bool find_several(struct place *place)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct phema_error ignored;
        const struct source *source = &sources[i];
        if (!source->is_array && source->size && is_present(source) &&
            !read_place(place, source, &ignored) && place->size > 1)
            return true;
    }
    return false;
}

/* For a process that MPI sees as one of size. PHEMA_ERR_USAGE where it is alone, and a launcher has
 * started several: that of another MPI library. */
static enum phema_status check_library(unsigned size, struct phema_error *err)
{
    struct place place;
    if (size > 1 || !find_several(&place))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "this is process %llu of %llu (%s and %s), but MPI sees it alone: the "
                      "launcher belongs to another MPI library than this program; use the mpirun "
                      "of its own library, srun --mpi=pmix or --mpi=pmi2, or posthoc-ema synth "
                      "--part auto",
                      (unsigned long long)place.rank + 1, (unsigned long long)place.size,
                      place.source->rank, place.source->size);
}

/* For a run that shares nothing. PHEMA_ERR_USAGE when a launcher has started several processes:
 * each of them would make the same outputs. Tasks of an array are no such processes. */
static enum phema_status check_alone(struct phema_error *err)
{
    struct place place;
    if (find_several(&place)) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "this is process %llu of %llu (%s and %s), and all would write the same "
                         "outputs; --part auto shares the work, and so does posthoc-ema-mpi under "
                         "mpirun; for a run of its own, unset %s",
                         (unsigned long long)place.rank + 1, (unsigned long long)place.size,
                         place.source->rank, place.source->size, place.source->rank);
        return cli_suggest(err, PHEMA_ERR_USAGE, "part", "auto");
    }
    return PHEMA_OK;
}

/* ---- The option ---- */

/* "2/8" */
static enum phema_status read_numbers(uint64_t *part, uint64_t *n_parts, const char *text,
                                      struct phema_error *err)
{
    const char *at = text;
    *part = read_digits(&at);
    *n_parts = 0;
    if (*at == '/') {
        at++;
        *n_parts = read_digits(&at);
    }
    if (*part < 1 || *part > *n_parts || *n_parts > PHEMA_MAX_PARTS || *at) {
        (void)cli_fail_option(err, PHEMA_ERR_USAGE, "part",
                              "'%s' is not I/N with I from 1 to N and N up to %d, such as 2/8, "
                              "and not auto",
                              text, PHEMA_MAX_PARTS);
        char near[64] = "1/2"; /* a list that begins with 0 has the same number of parts */
        if (!*at && *n_parts >= 1 && *n_parts <= PHEMA_MAX_PARTS)
            (void)snprintf(near, sizeof(near), "%llu/%llu",
                           (unsigned long long)(*part < 1 ? 1 : *n_parts),
                           (unsigned long long)*n_parts);
        return cli_suggest(err, PHEMA_ERR_USAGE, "part", near);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_read_part(struct phema_synthesis *synthesis, const char *part,
                             const struct cli_common *common, struct phema_error *err)
{
    struct phema_synth_options *options = &synthesis->request.synth;
    if (!part)
        return common->team ? check_library(common->team->size, err) : check_alone(err);
    synthesis->joins = strcmp(part, "auto") == 0;
    if (!synthesis->joins)
        return read_numbers(&options->part, &options->n_parts, part, err);
    struct place place = {0};
    enum phema_status status = read_launcher(&place, err);
    if (status)
        return status;
    options->part = place.rank + 1;
    options->n_parts = place.size;
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_check_team(const struct cli_synth_values *args, struct phema_error *err)
{
    if (args->part)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "part",
                               "the processes of MPI share the work already; leave it out, or "
                               "start posthoc-ema without MPI");
    if (args->profile_memory)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "profile-memory",
                               "is for a single process; start posthoc-ema");
    if (args->run.synth.gpu.uses_blas) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "--gpu-sums cublas: is for a single process; start posthoc-ema");
        return phema_error_set_about(err, PHEMA_ERR_USAGE, "gpu-sums");
    }
    return PHEMA_OK;
}
