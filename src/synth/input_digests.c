// SPDX-License-Identifier: Apache-2.0
/* input_digests.c - digest of all data read, for each snapshot. */
#include "input_digests.h"

#include <stdlib.h>
#include <string.h>

#include "phema/writer.h"
#include "worker.h"

#define CACHE_LINE ((size_t)64)

bool input_digests_are_wanted(const struct run *run)
{
    const struct phema_outputs *outputs = run->outputs;
    return outputs->m && (outputs->items[0].n_digests || run->options.verifies) &&
           !run->options.sample;
}

static size_t n_kinds(const struct run *run)
{
    return run->plan->n_rules + 2;
}

uint64_t input_digests_bytes(const struct run *run)
{
    size_t line = CACHE_LINE / sizeof(struct phema_hash_sum);
    size_t n = n_kinds(run) * run->plan->series->n; /* bounded by the layout of outputs */
    return input_digests_are_wanted(run) ? (n + line - 1) / line * CACHE_LINE : 0;
}

size_t input_digests_n_sums(const struct run *run)
{
    return run->input_digests ? n_kinds(run) * run->plan->series->n : 0;
}

uint64_t input_digests_shared_bytes(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    size_t of_output = sizeof(struct phema_hash_sum) + sizeof(struct phema_writer_part_sum);
    return input_digests_are_wanted(run)
               ? input_digests_bytes(run) + series->n_tensors * sizeof(uint64_t) +
                     series->n * of_output
               : 0;
}

struct phema_hash_sum *input_digests_new_sums(const struct run *run)
{
    size_t size = (size_t)input_digests_bytes(run);
    struct phema_hash_sum *sums = aligned_alloc(CACHE_LINE, size);
    if (sums)
        memset(sums, 0, size);
    return sums;
}

PHEMA_FALLIBLE input_digests_open(struct input_digests **out, const struct run *run,
                                  struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    *out = NULL;
    if (!input_digests_are_wanted(run))
        return PHEMA_OK;
    struct input_digests *digests = calloc(1, sizeof(*digests));
    if (!digests)
        return phema_fail_memory(err);
    *digests =
        (struct input_digests){.add = phema_block_hasher_for_cpu(),
                               .names = calloc(series->n_tensors + 1, sizeof(*digests->names)),
                               .sums = input_digests_new_sums(run)};
    if (!digests->names || !digests->sums) {
        input_digests_close(digests);
        return phema_fail_memory(err);
    }
    for (size_t i = 0; i < series->n_tensors; i++)
        digests->names[i] =
            phema_hash_name(series->tensors[i].tensor.name, series->tensors[i].tensor.name_size);
    *out = digests;
    return PHEMA_OK;
}

void input_digests_close(struct input_digests *digests)
{
    if (!digests)
        return;
    free(digests->names);
    free(digests->sums);
    free(digests);
}

size_t input_digests_kind(const struct run *run, size_t tensor)
{
    bool is_copy = run->plan->series->tensors[tensor].rule == PHEMA_RULE_COPY;
    return is_copy ? n_kinds(run) - 1 : run->plan->rule_of[tensor];
}

/* Blocks are counted from the start of each tensor. */
void input_digests_add(struct worker *worker, size_t k, const uint8_t *data)
{
    if (!worker->digests)
        return;
    const struct run *run = worker->run;
    const struct tile_range *range = &worker->range;
    const struct input_digests *digests = run->input_digests;
    size_t kind = input_digests_kind(run, range->tensor);
    struct phema_hash_sum *sum = &worker->digests[kind * run->plan->series->n + k];
    for (size_t b = 0; b < worker->n_blocks;) {
        struct block slice = next_tensor(worker, &b);
        const struct phema_hash_blocks blocks = {
            .data = data + phema_dtype_bytes(range->dtype, slice.first),
            .size = (size_t)phema_dtype_bytes(range->dtype, slice.n_elems),
            .block_size = (size_t)phema_dtype_bytes(range->dtype, BLOCK_ELEMS),
            .name = digests->names[slice.tensor],
            .first = slice.tensor == range->tensor ? range->first / BLOCK_ELEMS : 0,
        };
        digests->add(sum, &blocks);
    }
}

void input_digests_move(struct phema_hash_sum *to, struct phema_hash_sum *from, size_t n)
{
    for (size_t x = 0; x < n; x++)
        phema_hash_sum_add(&to[x], &from[x]);
    memset(from, 0, n * sizeof(*from));
}

/* ---- Of an output ---- */

bool input_digests_is_input(const struct run *run, size_t output, size_t x)
{
    const struct phema_target *target = &run->plan->targets[output];
    size_t kind = x / run->plan->series->n, k = x % run->plan->series->n;
    if (kind == n_kinds(run) - 1)
        return k == target->newest;
    const struct phema_solution *solution = kind ? &target->ruled[kind - 1] : &target->solution;
    return run->rule_states[kind].is_needed && solution->weights[k] != 0;
}

void input_digests_of_output(struct phema_hash_sum *out, const struct run *run, size_t output)
{
    size_t n = run->outputs->items[output].n_digests, n_snapshots = run->plan->series->n;
    memset(out, 0, n * sizeof(*out));
    for (size_t x = 0; x < input_digests_n_sums(run); x++)
        if (x % n_snapshots < n && input_digests_is_input(run, output, x))
            phema_hash_sum_add(&out[x % n_snapshots], &run->input_digests->sums[x]);
}
