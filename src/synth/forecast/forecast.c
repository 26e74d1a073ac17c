// SPDX-License-Identifier: Apache-2.0
/* forecast.c - predicts the bytes, memory, passes and seconds of a run, from the same budget and
 * tiling as the run itself, and from rates measured now, where the run is long enough. */
#include <math.h>

#include "forecast/measure_rates.h"
#include "gpu/gpu_run.h"
#include "phema/memory.h"
#include "run.h"

/* ---- Memory ---- */

static void add_part(struct phema_forecast *out, const char *name, const char *label,
                     uint64_t bytes)
{
    if (!bytes)
        return;
    out->parts[out->n_parts].name = name;
    out->parts[out->n_parts].label = label;
    out->parts[out->n_parts++].bytes = bytes;
}

static void fill_memory(struct phema_forecast *out, const struct run *run)
{
    const struct memory_budget *budget = &run->budget;
    const struct worker_buffers *buffers = &budget->buffers;
    uint64_t n = budget->n_threads;
    add_part(out, "baseline", "program, tensors, headers", budget->baseline + budget->weights);
    add_part(out, "sums", "sums", n * (buffers->sums + buffers->digests));
    add_part(out, "tiles_out", "tiles to write", n * buffers->written);
    add_part(out, "tiles_in", "copied tiles", n * (buffers->copied + buffers->references));
    add_part(out, "lanes", "weights for devices", budget->lanes);
    add_part(out, "decoders", "decompression", budget->decoders);
    add_part(out, "threads", "threads", n * BUDGET_THREAD_BYTES);
    out->stage_bytes[PHEMA_STAGE_ACCUMULATE] = memory_budget_accumulate_bytes(budget);
    out->stage_bytes[PHEMA_STAGE_WRITE] = memory_budget_write_bytes(budget);
    out->stage_bytes[PHEMA_STAGE_PUBLISH] = budget->baseline;
    for (int i = 0; i < PHEMA_STAGE_ACCUMULATE; i++)
        out->stage_bytes[i] =
            run->options.memory_profile
                ? phema_memory_profile_stage(run->options.memory_profile, (enum phema_stage)i)
                      .anonymous.peak
                : budget->baseline;
    for (int i = 0; i < PHEMA_N_STAGES; i++)
        if (out->stage_bytes[i] > out->peak_ram_bytes)
            out->peak_ram_bytes = out->stage_bytes[i];
}

/* ---- Bytes ---- */

/* Uncached bytes of all snapshot files. *path: a file that is mostly uncached, or NULL. */
static uint64_t count_cold(const struct run *run, const char **path)
{
    const struct phema_series *series = run->plan->series;
    uint64_t cold = 0;
    *path = NULL;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        size_t n_files =
            series->snapshots[k].is_checkpoint_shared ? 0 : phema_checkpoint_n_files(checkpoint);
        for (size_t f = 0; f < n_files; f++) {
            const struct phema_file *file = phema_checkpoint_file(checkpoint, f);
            uint64_t size = phema_file_span(file).size, cached = 0;
            if (!phema_page_cache_bytes(&cached, phema_file_path(file)) || cached >= size)
                continue;
            cold += size - cached;
            if (!*path && cached < size / 2)
                *path = phema_file_path(file);
        }
    }
    return cold;
}

/* ---- Time ---- */

static double seconds_for(double bytes, double per_s)
{
    return per_s > 0 ? bytes / per_s : 0; /* 0 for an infinite rate */
}

/* Reading, summing and writing keep the CPUs busy. Meanwhile outputs are synced and uncached inputs
 * fetched. Copies of a template come before that, and finishing after it. */
static double run_seconds(const struct phema_forecast *forecast, const struct run *run,
                          const struct rates *rates)
{
    double read = (double)forecast->read_bytes, write = (double)forecast->write_bytes;
    double work = seconds_for(read, rates->add) + seconds_for(read, rates->decode);
    double cold = seconds_for((double)forecast->cold_bytes, rates->fetch);
    double store = seconds_for(write, rates->store);
    double busy = fmax(fmax(work, cold), store);
    if (phema_output_traits(run->outputs)->is_copy)
        busy += seconds_for(write, rates->write); /* the copy whose tensors are replaced */
    if (phema_output_traits(run->outputs)->has_finish)
        busy += seconds_for(write, rates->finish) + seconds_for(write, rates->write);
    return busy;
}

static enum phema_status fill_seconds(struct phema_forecast *out, struct run *run,
                                      const struct phema_forecast_options *timing,
                                      struct phema_error *err)
{
    const char *cold_path = NULL;
    out->cold_bytes = count_cold(run, &cold_path);
    if (timing->assumed_bandwidth > 0) {
        double both = (double)out->read_bytes + (double)out->write_bytes;
        out->add_rate = out->fetch_rate = out->store_rate = timing->assumed_bandwidth;
        out->seconds = timing->elapsed_s + both / timing->assumed_bandwidth;
        return PHEMA_OK;
    }
    if (!timing->measures && out->read_bytes + out->write_bytes < PHEMA_LEAST_MEASURED_BYTES) {
        out->add_rate = out->fetch_rate = out->store_rate = out->seconds = (double)NAN;
        return PHEMA_OK;
    }
    struct rates rates;
    enum phema_status status = measure_rates(&rates, run, cold_path, err);
    if (status)
        return status;
    if (run->gpu_run) { /* all GPUs, with the threads that copy inputs to them */
        status = gpu_run_rate(&rates.add, &out->is_rate_assumed, run, err);
        if (status)
            return status;
        rates.add *= run->gpu_run->n_gpus;
    }
    out->add_rate = rates.add;
    out->fetch_rate = rates.fetch;
    out->store_rate = rates.store;
    out->seconds = timing->elapsed_s + run_seconds(out, run, &rates);
    return PHEMA_OK;
}

static enum phema_status fill(struct phema_forecast *out, struct run *run,
                              const struct phema_forecast_options *timing, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = run_prepare(run, err);
    if (status)
        return status;
    out->n_passes = run->budget.n_passes;
    out->targets_per_pass = run->budget.targets_per_pass;
    out->tile_elems = run->budget.tile_elems;
    out->n_threads = run->budget.n_threads;
    out->limit_bytes = run->budget.limit;
    out->device = run->result->device;
    if (run->gpu_run) {
        out->device.gpu_bytes = run->gpu_run->n_gpus * run->gpu_run->fit.gpu_bytes;
        out->device.n_tile_passes = run->gpu_run->fit.n_tile_passes;
    }
    fill_memory(out, run);
    out->read_bytes = run->total_bytes;
    out->io = run->result->n_direct                          ? "direct"
              : run->result->n_read >= run->result->n_mapped ? "read"
                                                             : "mmap";
    for (size_t j = 0; j < run->outputs->m; j++)
        out->write_bytes += run->outputs->items[j].size_bytes;
    out->is_compressed = phema_output_traits(run->outputs)->is_compressed;
    for (size_t i = 0; i < series->n_tensors; i++)
        *(series->tensors[i].rule == PHEMA_RULE_COPY ? &out->n_copied : &out->n_averaged) += 1;
    return fill_seconds(out, run, timing, err);
}

PHEMA_FALLIBLE phema_synth_forecast(struct phema_forecast *out, const struct phema_plan *plan,
                                    struct phema_outputs *outputs,
                                    const struct phema_synth_options *options,
                                    const struct phema_forecast_options *timing,
                                    struct phema_error *err)
{
    *out = (struct phema_forecast){0};
    struct phema_synth_result result = {0};
    struct run run;
    run_init(&run, plan, outputs, options, &result);
    run.is_dry_run = true;
    enum phema_status status = fill(out, &run, timing, err);
    run_clear(&run);
    return status;
}
