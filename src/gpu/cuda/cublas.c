// SPDX-License-Identifier: Apache-2.0
/* cublas.c - sums by cuBLAS. In pedantic mode factors keep all their bits: no TF32, no sums in a
 * smaller type. The workspace is ours, so the same call gives the same bits every time. cuBLAS
 * chooses the order of summation. */
#include "runtime.h"

#include <cublas_v2.h>

static enum phema_cuda_result check(cublasStatus_t status, const char *doing,
                                    struct phema_cuda_message *message)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return PHEMA_CUDA_OK;
    return runtime_fail(
        message, status == CUBLAS_STATUS_ALLOC_FAILED ? PHEMA_CUDA_MEMORY : PHEMA_CUDA_FAILED,
        "cuBLAS: %s: %s", doing, cublasGetStatusString(status));
}

enum phema_cuda_result runtime_blas_open(struct runtime_blas **out, struct runtime_stream *stream,
                                         uint8_t *work, struct phema_cuda_message *message)
{
    cublasHandle_t handle = NULL;
    enum phema_cuda_result result = check(cublasCreate(&handle), "it does not start", message);
    if (result)
        return result;
    *out = (struct runtime_blas *)handle; /* closed with the lane, even after a failure below */
    result = check(cublasSetStream(handle, (cudaStream_t)(void *)stream), "its stream", message);
    if (result)
        return result;
    /* after the stream, which resets it */
    result = check(cublasSetWorkspace(handle, work, PHEMA_CUDA_BLAS_BYTES), "its memory", message);
    if (result)
        return result;
    result = check(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH), "its precision", message);
    if (result)
        return result;
    return check(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), "its factors", message);
}

void runtime_blas_close(struct runtime_blas *blas)
{
    if (blas)
        (void)cublasDestroy((cublasHandle_t)blas);
}

/* cuBLAS is column-major, so it sees each of our row-major matrices as its transpose:
 * sums^T [numbers x rows] = panel^T [numbers x inputs] * weights [inputs x rows]. */
enum phema_cuda_result runtime_multiply(struct runtime_blas *blas,
                                        const struct runtime_product *product,
                                        struct phema_cuda_message *message)
{
    cublasHandle_t handle = (cublasHandle_t)blas;
    int m = (int)product->n_numbers, n = (int)product->n_rows, k = (int)product->n_inputs;
    if (product->is_f64) {
        const double one = 1, before = product->adds ? 1 : 0;
        int row = (int)(product->row_bytes / sizeof(double));
        return check(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &one,
                                 (const void *)product->panel, row, (const void *)product->weights,
                                 n, &before, (void *)product->sums, row),
                     "DGEMM", message);
    }
    const float one = 1, before = product->adds ? 1 : 0;
    int row = (int)(product->row_bytes / sizeof(float));
    return check(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &one,
                             (const void *)product->panel, row, (const void *)product->weights, n,
                             &before, (void *)product->sums, row),
                 "SGEMM", message);
}
