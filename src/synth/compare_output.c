// SPDX-License-Identifier: Apache-2.0
/* compare_output.c - compares tiles with an existing output. In new files tensors are found by
 * name. In a copy they lie as in its template, and all other bytes must be the template's. */
#include "compare_output.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "phema/checksum.h"
#include "phema/strbuf.h"

struct compare_output {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_checkpoint *checkpoint;
    struct phema_reader *reader;
    struct phema_tensor *tensors;  /* [n_tensors] their locations in the output */
    _Atomic uint64_t *n_different; /* [n_tensors] */
    _Atomic uint64_t n_compared;
    uint64_t n_other_bytes;
};

/* ---- Tensor locations ---- */

static bool is_copy(const struct compare_output *comparison)
{
    return phema_output_traits(comparison->outputs)->is_copy;
}

static bool is_alike(const struct phema_tensor *a, const struct phema_tensor *b,
                     enum phema_dtype dtype)
{
    bool is_same = a->dtype == dtype && a->rank == b->rank;
    for (unsigned d = 0; is_same && d < b->rank; d++)
        is_same = a->shape[d] == b->shape[d];
    return is_same;
}

static enum phema_status find_tensors(struct compare_output *comparison, struct phema_error *err)
{
    const struct phema_series *series = comparison->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        const struct phema_tensor *found =
            phema_checkpoint_find(comparison->checkpoint, tensor->name, tensor->name_size);
        struct phema_name_buffer shown;
        (void)phema_name_escape(&shown, tensor->name, tensor->name_size);
        if (!found)
            return phema_fail(err, PHEMA_NO, "tensor '%s' is missing", shown.text);
        if (!is_alike(found, tensor, comparison->outputs->dtypes[i]))
            return phema_fail(err, PHEMA_NO,
                              "tensor '%s' has another dtype or shape than it should", shown.text);
        comparison->tensors[i] = *found;
    }
    size_t n = phema_checkpoint_n_tensors(comparison->checkpoint);
    if (n != series->n_tensors)
        return phema_fail(err, PHEMA_NO, "holds %zu tensors, expected %zu", n, series->n_tensors);
    return PHEMA_OK;
}

/* A copy has the files of its template, in their sizes. */
static enum phema_status check_files(const struct compare_output *comparison,
                                     struct phema_error *err)
{
    const struct phema_checkpoint *checkpoint = comparison->checkpoint;
    const struct phema_checkpoint *template = comparison->outputs->items[0].template;
    size_t n = phema_checkpoint_n_files(template);
    if (phema_checkpoint_n_files(checkpoint) != n)
        return phema_fail(err, PHEMA_NO,
                          "has tensors in %zu files, expected %zu as the checkpoint "
                          "that it copies",
                          phema_checkpoint_n_files(checkpoint), n);
    for (size_t f = 0; f < n; f++) {
        uint64_t size = phema_file_span(phema_checkpoint_file(checkpoint, f)).size;
        uint64_t wanted = phema_file_span(phema_checkpoint_file(template, f)).size;
        if (size != wanted)
            return phema_fail(
                err, PHEMA_NO, "has %llu bytes%s%s, expected %llu as the file that it copies",
                (unsigned long long)size, n > 1 ? " in " : "",
                n > 1 ? phema_checkpoint_file_label(template, f) : "", (unsigned long long)wanted);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE compare_output_open(struct compare_output **out, const struct phema_plan *plan,
                                   const struct phema_outputs *outputs,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err)
{
    struct compare_output *comparison = calloc(1, sizeof(*comparison));
    if (!comparison)
        return phema_fail_memory(err);
    *comparison =
        (struct compare_output){.plan = plan, .outputs = outputs, .checkpoint = checkpoint};
    size_t n = plan->series->n_tensors;
    comparison->tensors = calloc(n + 1, sizeof(*comparison->tensors));
    comparison->n_different = calloc(n + 1, sizeof(*comparison->n_different));
    enum phema_status status =
        comparison->tensors && comparison->n_different ? PHEMA_OK : phema_fail_memory(err);
    if (status)
        goto fail;
    status = phema_reader_open(&comparison->reader, checkpoint, err);
    if (status)
        goto fail;
    for (size_t i = 0; i < n && is_copy(comparison); i++) /* the locations of its template */
        comparison->tensors[i] = phema_output_tensor(plan, outputs, &outputs->items[0], i);
    status = is_copy(comparison) ? check_files(comparison, err) : find_tensors(comparison, err);
    if (status)
        goto fail;
    *out = comparison;
    return PHEMA_OK;

fail:
    compare_output_close(comparison);
    return status;
}

void compare_output_close(struct compare_output *comparison)
{
    if (!comparison)
        return;
    phema_reader_close(comparison->reader);
    free(comparison->tensors);
    free(comparison->n_different);
    free(comparison);
}

/* ---- Tensors ---- */

/* Of elements smaller than a byte, differing bytes are counted. */
static uint64_t count_different(const uint8_t *a, const uint8_t *b, size_t size, size_t elem)
{
    uint64_t n = 0;
    for (size_t at = 0; at < size; at += elem)
        n += memcmp(a + at, b + at, elem) != 0;
    return n;
}

static enum phema_status compare_tensor(struct compare_output *comparison, size_t i, uint64_t first,
                                        uint64_t n, const void *data, struct phema_error *err)
{
    if (comparison->outputs->is_replaced && !comparison->outputs->is_replaced[i])
        return PHEMA_OK; /* compared with the other bytes */
    const struct phema_tensor *tensor = &comparison->tensors[i];
    size_t size = (size_t)phema_dtype_bytes(tensor->dtype, n);
    bool is_view = !tensor->is_compressed && !tensor->stride && !tensor->chunks;
    uint8_t *scratch = is_view ? NULL : malloc(size);
    if (!is_view && !scratch)
        return phema_fail_memory(err);
    const uint8_t *there = NULL;
    enum phema_status status =
        phema_reader_read(&there, comparison->reader, tensor, first, n, scratch, err);
    if (!status) {
        uint64_t elem = phema_dtype_bytes(tensor->dtype, 1);
        if (memcmp(there, data, size) != 0)
            atomic_fetch_add(&comparison->n_different[i],
                             count_different(there, data, size, elem ? (size_t)elem : 1));
        atomic_fetch_add_explicit(&comparison->n_compared, n, memory_order_relaxed);
        if (is_view)
            phema_tensor_release(comparison->checkpoint, tensor, first, n);
    }
    free(scratch);
    return status;
}

PHEMA_FALLIBLE compare_output_tensors(struct compare_output *comparison, const size_t *tensors,
                                      size_t n_tensors, uint64_t first, uint64_t n,
                                      const void *data, struct phema_error *err)
{
    const uint8_t *bytes = data;
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < n_tensors && n && !status; t++) {
        uint64_t n_elems = comparison->plan->series->tensors[tensors[t]].tensor.n_elems;
        if (first >= n_elems) { /* in other tiles */
            first -= n_elems;
            continue;
        }
        uint64_t n_here = n < n_elems - first ? n : n_elems - first;
        status = compare_tensor(comparison, tensors[t], first, n_here, bytes, err);
        bytes += phema_dtype_bytes(comparison->outputs->dtypes[tensors[t]], n_here);
        n -= n_here;
        first = 0;
    }
    return status;
}

/* ---- Other bytes of a copy ---- */

static uint64_t count_bytes(const uint8_t *a, const uint8_t *b, uint64_t start, uint64_t end)
{
    uint64_t n = 0;
    if (start < end && memcmp(a + start, b + start, (size_t)(end - start)) != 0)
        n = count_different(a + start, b + start, (size_t)(end - start), 1);
    return n;
}

static struct phema_span content_of(const struct phema_checkpoint *checkpoint, size_t f)
{
    return phema_file_span(phema_checkpoint_file(checkpoint, f));
}

/* Counts the bytes of wrong checksums. Both lists are sorted; the headers of records that differ in
 * another way are compared with the other bytes.
 *   changed  [n_changed] records of the template whose tensors were replaced */
static void check_records(struct compare_output *comparison, const struct phema_record *changed,
                          size_t n_changed, const struct phema_record *records, size_t n)
{
    for (size_t c = 0, r = 0; c < n_changed; c++) {
        const struct phema_record *wanted = &changed[c];
        while (r < n && (records[r].file < wanted->file ||
                         (records[r].file == wanted->file && records[r].offset < wanted->offset)))
            r++;
        if (r == n || records[r].file != wanted->file || records[r].offset != wanted->offset ||
            records[r].size_bytes != wanted->size_bytes)
            continue;
        struct phema_span content = content_of(comparison->checkpoint, wanted->file);
        uint32_t crc = phema_crc32(0, content.data + wanted->offset, (size_t)wanted->size_bytes);
        comparison->n_other_bytes += records[r].crc == crc ? 0 : (uint64_t)4 * wanted->n_crc;
    }
}

/* Counts the differing bytes outside the extents. */
static void count_others(struct compare_output *comparison, const struct phema_extent *extents,
                         size_t n_extents)
{
    const struct phema_checkpoint *template = comparison->outputs->items[0].template;
    uint64_t *n = &comparison->n_other_bytes;
    size_t x = 0;
    for (size_t f = 0; f < phema_checkpoint_n_files(template); f++) {
        struct phema_span content = content_of(comparison->checkpoint, f);
        struct phema_span before = content_of(template, f);
        uint64_t at = 0;
        for (; x < n_extents && extents[x].file == f; x++) {
            *n += count_bytes(content.data, before.data, at, extents[x].start);
            at = extents[x].end > at ? extents[x].end : at;
        }
        *n += count_bytes(content.data, before.data, at, content.size);
    }
}

static enum phema_status compare_others(struct compare_output *comparison, struct phema_error *err)
{
    const struct phema_plan *plan = comparison->plan;
    const struct phema_outputs *outputs = comparison->outputs;
    struct phema_record *changed = NULL, *records = NULL;
    struct phema_extent *extents = NULL;
    size_t n_changed = 0, n = 0, n_extents = 0;
    enum phema_status status = phema_output_records(&changed, &n_changed, plan, outputs, 0, err);
    if (!status)
        status = phema_checkpoint_records(&records, &n, comparison->checkpoint, err);
    if (!status)
        status =
            phema_output_extents(&extents, &n_extents, plan, outputs, 0, changed, n_changed, err);
    if (!status) {
        check_records(comparison, changed, n_changed, records, n);
        count_others(comparison, extents, n_extents);
    }
    free(extents);
    free(records);
    free(changed);
    return status;
}

PHEMA_FALLIBLE phema_synth_check_copied(const struct phema_plan *plan,
                                        const struct phema_outputs *outputs,
                                        const struct phema_checkpoint *checkpoint,
                                        struct phema_error *err)
{
    struct compare_output comparison = {.plan = plan, .outputs = outputs, .checkpoint = checkpoint};
    enum phema_status status = check_files(&comparison, err);
    if (!status)
        status = compare_others(&comparison, err);
    if (status || !comparison.n_other_bytes)
        return status;
    return phema_fail(err, PHEMA_NO, "%llu byte%s from the file that it copies",
                      (unsigned long long)comparison.n_other_bytes,
                      comparison.n_other_bytes == 1 ? " differs" : "s differ");
}

PHEMA_FALLIBLE compare_output_finish(struct compare_output *comparison, struct phema_error *err)
{
    return is_copy(comparison) ? compare_others(comparison, err)
                               : phema_reader_finish(comparison->reader, err);
}

PHEMA_FALLIBLE compare_output_count(struct phema_verification *out,
                                    const struct compare_output *comparison,
                                    struct phema_error *err)
{
    size_t n = comparison->plan->series->n_tensors;
    out->differences = calloc(n + 1, sizeof(*out->differences));
    if (!out->differences)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        uint64_t n_elems = atomic_load(&comparison->n_different[i]);
        if (n_elems)
            out->differences[out->n++] = (struct phema_unequal){i, n_elems};
    }
    out->n_elems = atomic_load(&comparison->n_compared);
    out->n_other_bytes = comparison->n_other_bytes;
    return PHEMA_OK;
}
