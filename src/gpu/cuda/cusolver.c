// SPDX-License-Identifier: Apache-2.0
/* cusolver.c - the float64 Cholesky factorisation by cuSOLVER. */
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

/* Memory on the device: the matrix, the workspace, the status. */
struct factorisation {
    cusolverDnHandle_t handle;
    uint8_t *matrix, *work, *info;
    int n_work; /* doubles */
};

/* Row-major lower is column-major upper, so no transposed copy is needed. */
static enum phema_cuda_result prepare(struct factorisation *factorisation, int n,
                                      struct phema_cuda_message *message)
{
    enum phema_cuda_result result =
        check(cusolverDnCreate(&factorisation->handle), "it does not start", message);
    if (result)
        return result;
    result =
        runtime_alloc(&factorisation->matrix, (uint64_t)n * (uint64_t)n * sizeof(double), message);
    if (result)
        return result;
    result =
        check(cusolverDnDpotrf_bufferSize(factorisation->handle, CUBLAS_FILL_MODE_UPPER, n,
                                          (void *)factorisation->matrix, n, &factorisation->n_work),
              "its memory", message);
    if (result)
        return result;
    result = runtime_alloc(&factorisation->work, (uint64_t)factorisation->n_work * sizeof(double),
                           message);
    return result ? result : runtime_alloc(&factorisation->info, sizeof(int), message);
}

static enum phema_cuda_result execute(struct factorisation *factorisation, double *matrix, int n,
                                      struct phema_cuda_message *message)
{
    enum phema_cuda_result result = prepare(factorisation, n, message);
    if (result)
        return result;
    size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    int info = 0;
    result = check_copy(cudaMemcpy(factorisation->matrix, matrix, bytes, cudaMemcpyHostToDevice),
                        message);
    if (result)
        return result;
    result = check(cusolverDnDpotrf(factorisation->handle, CUBLAS_FILL_MODE_UPPER, n,
                                    (void *)factorisation->matrix, n, (void *)factorisation->work,
                                    factorisation->n_work, (void *)factorisation->info),
                   "DPOTRF", message);
    if (result)
        return result;
    /* synchronous: waits for DPOTRF */
    result = check_copy(
        cudaMemcpy(&info, factorisation->info, sizeof(info), cudaMemcpyDeviceToHost), message);
    if (result)
        return result;
    if (info > 0)
        return runtime_fail(message, PHEMA_CUDA_NO, "pivot %d is not positive", info);
    if (info < 0)
        return runtime_fail(message, PHEMA_CUDA_FAILED, "cuSOLVER: DPOTRF: argument %d", -info);
    return check_copy(cudaMemcpy(matrix, factorisation->matrix, bytes, cudaMemcpyDeviceToHost),
                      message);
}

enum phema_cuda_result runtime_factor(double *matrix, uint64_t n,
                                      struct phema_cuda_message *message)
{
    struct factorisation factorisation = {0};
    enum phema_cuda_result result = execute(&factorisation, matrix, (int)n, message);
    runtime_free(factorisation.matrix);
    runtime_free(factorisation.work);
    runtime_free(factorisation.info);
    if (factorisation.handle)
        (void)cusolverDnDestroy(factorisation.handle);
    return result;
}
