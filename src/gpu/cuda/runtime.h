/* runtime.h - the few things of CUDA that the module's own files need: runtime.c, kernels.cu,
 * blas.c and solver.c are all that know its libraries. The tests have the same functions for the
 * host's memory, with streams that do nothing before they are waited for, so that lanes.c is
 * tested on machines without a device.
 *
 * What returns a result writes a message when that is not PHEMA_CUDA_OK. */
#ifndef GPU_CUDA_RUNTIME_H
#define GPU_CUDA_RUNTIME_H

#include "phema/cuda_plugin.h"

#define RUNTIME_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#define RUNTIME_FALLIBLE                   __attribute__((warn_unused_result)) enum phema_cuda_result

#ifdef __cplusplus
extern "C" {
#endif

enum phema_cuda_result runtime_fail(struct phema_cuda_message *message,
                                    enum phema_cuda_result result, const char *format, ...)
    RUNTIME_PRINTF(3, 4);

RUNTIME_FALLIBLE runtime_count(int32_t *n, struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_describe(struct phema_cuda_info *out, int32_t index,
                                  struct phema_cuda_message *message);
/* What this thread does from here on is for that device. */
RUNTIME_FALLIBLE runtime_use(int32_t index, struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_free_bytes(uint64_t *bytes, struct phema_cuda_message *message);

/* Memory of the device, and of the host that the device reads and writes. PHEMA_CUDA_MEMORY */
RUNTIME_FALLIBLE runtime_take(uint8_t **out, uint64_t bytes, struct phema_cuda_message *message);
void runtime_give(uint8_t *memory); /* takes NULL, like all that undo something */
RUNTIME_FALLIBLE runtime_take_host(uint8_t **out, uint64_t bytes,
                                   struct phema_cuda_message *message);
void runtime_give_host(uint8_t *memory);

struct runtime_stream;
struct runtime_event;
RUNTIME_FALLIBLE runtime_stream_open(struct runtime_stream **out,
                                     struct phema_cuda_message *message);
void runtime_stream_close(struct runtime_stream *stream); /* when all of it is done */
RUNTIME_FALLIBLE runtime_event_open(struct runtime_event **out, struct phema_cuda_message *message);
void runtime_event_close(struct runtime_event *event);

/* Queued: they return at once. */
RUNTIME_FALLIBLE runtime_send(uint8_t *device, const uint8_t *host, uint64_t bytes,
                              struct runtime_stream *stream, struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_receive(uint8_t *host, const uint8_t *device, uint64_t bytes,
                                 struct runtime_stream *stream, struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_record(struct runtime_event *event, struct runtime_stream *stream,
                                struct phema_cuda_message *message);
/* Until what was queued before the event was recorded is done; at once when it never was. */
RUNTIME_FALLIBLE runtime_wait(struct runtime_event *event, struct phema_cuda_message *message);

/* ---- Kernels; all memory is the device's ---- */

struct runtime_job {
    enum phema_cuda_dtype input, output;
    bool is_f64, saturates;
    const uint8_t *inputs; /* place p at p * input_bytes */
    uint64_t input_bytes;
    const uint32_t *indices; /* [n_inputs] of places */
    /* of the sums' type, [groups of targets][n_inputs][n_grouped]: a group is as many targets as
     * one pass over the inputs makes, the last one filled up with zeros */
    const void *weights;
    uint64_t n_inputs, n_rows, n_grouped;
    const struct phema_cuda_block *blocks;
    uint64_t n_blocks;
    uint8_t *rows; /* row m at m * row_bytes */
    uint64_t row_bytes;
    struct phema_cuda_counts *counts; /* [n_rows x n_blocks] */
    const uint8_t *sums; /* runtime_round alone: row m at m * sum_bytes, of doubles or floats */
    uint64_t sum_bytes;
};

/* Targets in a group for so many: 1, or PHEMA_CUDA_GROUP, since what a few less would save is
 * nothing beside the way from the host. */
static inline uint64_t runtime_grouped(uint64_t n_rows)
{
    return n_rows > 1 ? PHEMA_CUDA_GROUP : 1;
}

/* Every number is summed over the inputs in their order with one fused multiply-add each. */
RUNTIME_FALLIBLE runtime_average(const struct runtime_job *job, struct runtime_stream *stream,
                                 struct phema_cuda_message *message);
/* sums -> rows, with counts */
RUNTIME_FALLIBLE runtime_round(const struct runtime_job *job, struct runtime_stream *stream,
                               struct phema_cuda_message *message);

/* Inputs [first, first + n) of job->indices as numbers of the sums' type, row k at
 * k * job->sum_bytes. */
RUNTIME_FALLIBLE runtime_widen(uint8_t *panel, const struct runtime_job *job, uint64_t first,
                               uint64_t n, uint64_t n_numbers, struct runtime_stream *stream,
                               struct phema_cuda_message *message);

/* ---- cuBLAS ---- */

struct runtime_blas;
/* work: PHEMA_CUDA_BLAS_BYTES */
RUNTIME_FALLIBLE runtime_blas_open(struct runtime_blas **out, struct runtime_stream *stream,
                                   uint8_t *work, struct phema_cuda_message *message);
void runtime_blas_close(struct runtime_blas *blas);

/* sums [n_rows x n_numbers] (+)= weights^T [n_rows x n_inputs] * panel [n_inputs x n_numbers], each
 * row-major; rows of sums and panel row_bytes apart, those of weights [n_inputs x n_rows] without
 * a gap. No TF32 or other shortening of factors. */
struct runtime_product {
    bool is_f64, adds; /* to what the sums are; else they are overwritten */
    uint8_t *sums;
    const uint8_t *panel, *weights;
    uint64_t row_bytes;
    uint64_t n_inputs, n_rows, n_numbers;
};
RUNTIME_FALLIBLE runtime_multiply(struct runtime_blas *blas, const struct runtime_product *product,
                                  struct phema_cuda_message *message);

/* ---- cuSOLVER ---- */

/* As in the module's table, on the device in use. */
RUNTIME_FALLIBLE runtime_factor(double *matrix, uint64_t n, struct phema_cuda_message *message);

#ifdef __cplusplus
}
#endif

#endif
