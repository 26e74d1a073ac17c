// SPDX-License-Identifier: Apache-2.0
/* cusolver.c - see cusolver.h: the float64 Cholesky factor by cuSOLVER. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <cusolverDn.h>

static enum phema_cuda_result check(cusolverStatus_t status, const char *doing,
                                    struct phema_cuda_message *message)
{
    if (status == CUSOLVER_STATUS_SUCCESS)
        return PHEMA_CUDA_OK;
    return runtime_fail(
        message, status == CUSOLVER_STATUS_ALLOC_FAILED ? PHEMA_CUDA_MEMORY : PHEMA_CUDA_FAILED,
        "cuSOLVER: %s: status %d", doing, (int)status);
}

static enum phema_cuda_result check_copy(cudaError_t error, struct phema_cuda_message *message)
{
    if (error == cudaSuccess)
        return PHEMA_CUDA_OK;
    (void)cudaGetLastError();
    return runtime_fail(message, PHEMA_CUDA_FAILED, "copying a matrix: %s",
                        cudaGetErrorString(error));
}

/* What lies on the device: the matrix, what the factorisation works in, how it went. */
struct factoring {
    cusolverDnHandle_t handle;
    uint8_t *matrix, *work, *outcome;
    int n_work; /* doubles */
};

/* Row-major lower is column-major upper, and that needs no transposed copy. */
static enum phema_cuda_result prepare(struct factoring *factoring, int n,
                                      struct phema_cuda_message *message)
{
    enum phema_cuda_result result =
        check(cusolverDnCreate(&factoring->handle), "it does not start", message);
    if (!result)
        result =
            runtime_take(&factoring->matrix, (uint64_t)n * (uint64_t)n * sizeof(double), message);
    if (!result)
        result =
            check(cusolverDnDpotrf_bufferSize(factoring->handle, CUBLAS_FILL_MODE_UPPER, n,
                                              (void *)factoring->matrix, n, &factoring->n_work),
                  "its memory", message);
    if (!result)
        result =
            runtime_take(&factoring->work, (uint64_t)factoring->n_work * sizeof(double), message);
    if (!result)
        result = runtime_take(&factoring->outcome, sizeof(int), message);
    return result;
}

static enum phema_cuda_result execute(const struct factoring *factoring, double *matrix, int n,
                                      struct phema_cuda_message *message)
{
    size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    int outcome = 0;
    enum phema_cuda_result result =
        check_copy(cudaMemcpy(factoring->matrix, matrix, bytes, cudaMemcpyHostToDevice), message);
    if (!result)
        result = check(cusolverDnDpotrf(factoring->handle, CUBLAS_FILL_MODE_UPPER, n,
                                        (void *)factoring->matrix, n, (void *)factoring->work,
                                        factoring->n_work, (void *)factoring->outcome),
                       "DPOTRF", message);
    if (!result) /* waits */
        result = check_copy(
            cudaMemcpy(&outcome, factoring->outcome, sizeof(outcome), cudaMemcpyDeviceToHost),
            message);
    if (!result && outcome > 0)
        return runtime_fail(message, PHEMA_CUDA_NO, "pivot %d is not positive", outcome);
    if (!result && outcome < 0)
        return runtime_fail(message, PHEMA_CUDA_FAILED, "cuSOLVER: DPOTRF: argument %d", -outcome);
    if (!result)
        result = check_copy(cudaMemcpy(matrix, factoring->matrix, bytes, cudaMemcpyDeviceToHost),
                            message);
    return result;
}

enum phema_cuda_result runtime_factor(double *matrix, uint64_t n,
                                      struct phema_cuda_message *message)
{
    struct factoring factoring = {0};
    enum phema_cuda_result result = prepare(&factoring, (int)n, message);
    if (!result)
        result = execute(&factoring, matrix, (int)n, message);
    runtime_give(factoring.matrix);
    runtime_give(factoring.work);
    runtime_give(factoring.outcome);
    if (factoring.handle)
        (void)cusolverDnDestroy(factoring.handle);
    return result;
}
