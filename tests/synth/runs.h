/* runs.h - small generated snapshots, and whole runs over them. */
#ifndef TESTS_SYNTH_RUNS_H
#define TESTS_SYNTH_RUNS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/strbuf.h"
#include "phema/synth.h"
#include "support.h"

#define MAX_TENSORS 9

/* One tensor of a snapshot. The shape has one dimension, or none with n == 0 and is_scalar. */
struct entry {
    const char *name;
    enum phema_dtype dtype;
    size_t n;
    bool is_scalar;
    const void *data;
};

static inline size_t bytes_of(const struct entry *entry)
{
    return entry->n * phema_dtype_bits(entry->dtype) / 8;
}

static inline void write_snapshot(const char *directory, const char *name,
                                  const struct entry *entries, size_t n)
{
    struct phema_error err = {0};
    struct phema_tensor tensors[MAX_TENSORS] = {0};
    uint64_t shapes[MAX_TENSORS], offsets[MAX_TENSORS], total = 0;
    for (size_t i = 0; i < n; i++) {
        shapes[i] = entries[i].n;
        tensors[i] = (struct phema_tensor){.name = entries[i].name,
                                           .name_size = strlen(entries[i].name),
                                           .dtype = entries[i].dtype,
                                           .rank = entries[i].is_scalar ? 0 : 1,
                                           .shape = &shapes[i],
                                           .n_elems = entries[i].n,
                                           .size_bytes = bytes_of(&entries[i])};
    }
    uint8_t *header = NULL;
    size_t header_size = 0;
    assert_ok(
        phema_safetensors_layout(&header, &header_size, offsets, &total, tensors, n, NULL, 0, &err),
        &err);
    uint8_t *file = calloc(1, total);
    assert_non_null(file);
    memcpy(file, header, header_size);
    for (size_t i = 0; i < n; i++)
        if (bytes_of(&entries[i]))
            memcpy(file + offsets[i], entries[i].data, bytes_of(&entries[i]));
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    support_write(path, file, total);
    free(path);
    free(file);
    free(header);
}

static inline char *make_directory(const char *name)
{
    char *path = support_tmp_path(name);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

struct request {
    const char *weights; /* "file weight" lines, or NULL: solve for sigma_rel */
    double sigma_rel;
    bool has_dtype;
    enum phema_dtype dtype;
    enum phema_overflow_rule overflow;
    unsigned n_threads;
    enum phema_sums sums;
    const double *sigma_rels; /* [n_sigma_rels] for several targets; out is a template */
    size_t n_sigma_rels;
    const char *include; /* a regular expression, or NULL: all tensors */
    struct phema_gpu_options gpu;
    struct phema_memory_profile *memory_profile;
    uint64_t max_ram_bytes;
    enum phema_io io;
    bool hashes_inputs;
};

static inline enum phema_status synthesise(const char *directory, const char *out,
                                           const struct request *request,
                                           struct phema_synth_result *result,
                                           struct phema_error *err)
{
    char *list = NULL;
    if (request->weights) {
        list = support_tmp_path("weights.txt");
        support_write(list, request->weights, strlen(request->weights));
    }
    struct phema_plan_options options = {
        .series = {.snapshots = directory,
                   .from = -HUGE_VAL,
                   .to = HUGE_VAL,
                   .includes = &request->include,
                   .n_includes = request->include != NULL,
                   .needs_no_profiles = list != NULL},
        .sigma_rels = request->sigma_rels ? request->sigma_rels : &request->sigma_rel,
        .n_sigma_rels = list                  ? 0
                        : request->sigma_rels ? request->n_sigma_rels
                                              : 1,
        .weights_file = list};
    struct phema_plan *plan = NULL;
    struct phema_outputs outputs = {0};
    enum phema_status status = phema_plan_make(&plan, &options, err);
    struct phema_outputs_options naming = {.out = out,
                                           .has_dtype = request->has_dtype,
                                           .dtype = request->dtype,
                                           .hashes_inputs = request->hashes_inputs,
                                           .accumulator = "f64",
                                           .command_options = ""};
    if (!status)
        status = phema_outputs_make(&outputs, plan, &naming, err);
    struct phema_synth_options how = {.n_threads = request->n_threads ? request->n_threads : 2,
                                      .sums = request->sums,
                                      .overflow = request->overflow,
                                      .gpu = request->gpu,
                                      .memory_profile = request->memory_profile,
                                      .max_ram_bytes = request->max_ram_bytes,
                                      .io = request->io,
                                      .replaces = true};
    if (!status)
        status = phema_synth_run(result, plan, &outputs, &how, err);
    phema_outputs_clear(&outputs);
    phema_plan_free(plan);
    free(list);
    return status;
}

/* The tensor's bytes in a file; fails the test if it is absent. */
static inline const void *find(const struct phema_checkpoint *checkpoint, const char *name)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, name, strlen(name));
    assert_non_null(tensor);
    return phema_tensor_start(checkpoint, tensor);
}

static const char two_files[] = "snapshot-0000100-0.050.safetensors 0.25\n"
                                "snapshot-0000200-0.050.safetensors 0.75\n";

#endif
