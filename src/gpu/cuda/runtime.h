/* runtime.h - the CUDA operations that the plug-in uses. Only runtime.c, kernels.cu, cublas.c and
 * cusolver.c include CUDA's headers. The tests implement the same functions on host memory, with
 * streams that execute only when waited for. So plugin.c is tested on machines without a device.
 *
 * Functions that return a result write a message when it is not PHEMA_CUDA_OK. */
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
/* Makes the device current for this thread. */
RUNTIME_FALLIBLE runtime_select_device(int32_t index, struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_free_bytes(uint64_t *bytes, struct phema_cuda_message *message);

/* Memory of the device, and memory of the host that the device can access. PHEMA_CUDA_MEMORY */
RUNTIME_FALLIBLE runtime_alloc(uint8_t **out, uint64_t bytes, struct phema_cuda_message *message);
void runtime_free(uint8_t *memory); /* takes NULL, like all functions that free or close */
RUNTIME_FALLIBLE runtime_alloc_host(uint8_t **out, uint64_t bytes,
                                    struct phema_cuda_message *message);
void runtime_free_host(uint8_t *memory);

struct runtime_stream;
struct runtime_event;
RUNTIME_FALLIBLE runtime_stream_open(struct runtime_stream **out,
                                     struct phema_cuda_message *message);
void runtime_stream_close(struct runtime_stream *stream); /* waits for queued work; takes NULL */
RUNTIME_FALLIBLE runtime_event_open(struct runtime_event **out, struct phema_cuda_message *message);
void runtime_event_close(struct runtime_event *event);

/* These queue work and return at once. */
RUNTIME_FALLIBLE runtime_copy_to_device(uint8_t *device, const uint8_t *host, uint64_t bytes,
                                        struct runtime_stream *stream,
                                        struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_copy_to_host(uint8_t *host, const uint8_t *device, uint64_t bytes,
                                      struct runtime_stream *stream,
                                      struct phema_cuda_message *message);
RUNTIME_FALLIBLE runtime_record(struct runtime_event *event, struct runtime_stream *stream,
                                struct phema_cuda_message *message);
/* Waits for all work queued before the event was recorded; returns at once if it never was. */
RUNTIME_FALLIBLE runtime_wait(struct runtime_event *event, struct phema_cuda_message *message);

/* ---- Kernels; all memory is the device's ---- */

struct runtime_job {
    enum phema_cuda_dtype input, output;
    bool is_f64, saturates;
    const uint8_t *inputs; /* tile i at i * input_bytes */
    uint64_t input_bytes;
    const uint32_t *indices; /* [n_inputs] tiles to sum, in this order */
    /* of the sums' type, [groups of targets][n_inputs][group_size]: one pass over the inputs sums
     * the targets of one group; the last group is padded with zeros */
    const void *weights;
    uint64_t n_inputs, n_rows, group_size;
    const struct phema_cuda_block *blocks;
    uint64_t n_blocks;
    uint8_t *rows; /* row m at m * row_bytes */
    uint64_t row_bytes;
    struct phema_cuda_counts *counts; /* [n_rows x n_blocks] */
    const uint8_t *sums; /* for runtime_round: row m at m * sum_bytes, of doubles or floats */
    uint64_t sum_bytes;
};

/* Targets per group: 1, or PHEMA_CUDA_GROUP. Sizes between would save little compared with the time
 * of copying from the host. */
static inline uint64_t runtime_group_size(uint64_t n_rows)
{
    return n_rows > 1 ? PHEMA_CUDA_GROUP : 1;
}

/* Sums every number over the inputs in their order, with one fused multiply-add per input. */
RUNTIME_FALLIBLE runtime_average(const struct runtime_job *job, struct runtime_stream *stream,
                                 struct phema_cuda_message *message);
/* Rounds sums to rows, with counts. */
RUNTIME_FALLIBLE runtime_round(const struct runtime_job *job, struct runtime_stream *stream,
                               struct phema_cuda_message *message);

/* Converts inputs [first, first + n) of job->indices to the sums' type, row k at
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
 * row-major. Rows of sums and panel are row_bytes apart; weights [n_inputs x n_rows] have no gaps.
 * No TF32 or other truncation of factors. */
struct runtime_product {
    bool is_f64;
    bool adds; /* to the existing sums; else they are overwritten */
    uint8_t *sums;
    const uint8_t *panel, *weights;
    uint64_t row_bytes;
    uint64_t n_inputs, n_rows, n_numbers;
};
RUNTIME_FALLIBLE runtime_multiply(struct runtime_blas *blas, const struct runtime_product *product,
                                  struct phema_cuda_message *message);

/* ---- cuSOLVER ---- */

/* As factor in the plug-in's table, on the current device. */
RUNTIME_FALLIBLE runtime_factor(double *matrix, uint64_t n, struct phema_cuda_message *message);

#ifdef __cplusplus
}
#endif

#endif
