// SPDX-License-Identifier: Apache-2.0
/* libraries.c - the functions of cuBLAS and cuSOLVER that the plug-in calls. They verify every
 * argument (sizes, leading dimensions, memory, workspace, modes) and compute with OpenBLAS. */
#include <cblas.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <lapacke.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cudart.h"
#include "ptx.h"

/* A column-major matrix on the device. */
struct matrix {
    const void *start;
    int n_rows, n_columns, leading;
    size_t scalar_bytes;
};

static size_t column_bytes(const struct matrix *matrix)
{
    return (size_t)matrix->n_rows * matrix->scalar_bytes;
}

static const uint8_t *column(const struct matrix *matrix, int j)
{
    return (const uint8_t *)matrix->start +
           (size_t)j * (size_t)matrix->leading * matrix->scalar_bytes;
}

/* The host's view. reads: every element must have been written. */
static PHEMA_FALLIBLE view_matrix(uint8_t **out, const struct matrix *matrix, int device,
                                  bool reads, struct phema_error *err)
{
    const uint8_t *end = column(matrix, matrix->n_columns - 1) + column_bytes(matrix);
    uint8_t *unused;
    enum phema_status status = ptx_view(out, device, matrix->start,
                                        (size_t)(end - (const uint8_t *)matrix->start), false, err);
    for (int j = 0; j < matrix->n_columns && reads && !status; j++)
        status = ptx_view(&unused, device, column(matrix, j), column_bytes(matrix), true, err);
    return status;
}

static void mark_matrix(const struct matrix *matrix)
{
    for (int j = 0; j < matrix->n_columns; j++)
        ptx_mark_written(column(matrix, j), column_bytes(matrix));
}

static bool is_matrix(const struct matrix *matrix)
{
    return matrix->n_rows > 0 && matrix->n_columns > 0 && matrix->leading >= matrix->n_rows &&
           matrix->start && (uintptr_t)matrix->start % matrix->scalar_bytes == 0;
}

/* ---- cuBLAS ---- */

struct cublasContext {
    cudaStream_t stream;
    void *work;
    size_t work_bytes;
    cublasMath_t math;
    cublasPointerMode_t pointers;
    int device;
};

struct product {
    bool is_f64;
    struct matrix a, b, c; /* c [m x n] = a [m x k] b^T [n x k] + before c */
    double before;
};

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_INVALID_VALUE ? "an argument is wrong" : "it failed";
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (*out)->pointers = CUBLAS_POINTER_MODE_HOST;
    (*out)->device = cudart_current_device();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->work = NULL; /* back to cuBLAS's own, as documented */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *work, size_t bytes)
{
    struct phema_error err = {0};
    uint8_t *view;
    if ((uintptr_t)work % 256 || ptx_view(&view, handle->device, work, bytes, false, &err)) {
        cudart_report("cublasSetWorkspace: not aligned to 256 bytes, or %s", err.message);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->work = work;
    handle->work_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}

static enum phema_status multiply(const void *arguments, int device, struct phema_error *err)
{
    struct product product;
    memcpy(&product, arguments, sizeof(product));
    const struct matrix *a = &product.a, *b = &product.b, *c = &product.c;
    uint8_t *from_a, *from_b, *to;
    enum phema_status status = view_matrix(&from_a, a, device, true, err);
    if (!status)
        status = view_matrix(&from_b, b, device, true, err);
    if (!status)
        status = view_matrix(&to, c, device, product.before != 0, err);
    if (status)
        return phema_fail_in(err, status, "GEMM");
    if (product.is_f64)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, c->n_rows, c->n_columns, a->n_columns,
                    1, (const void *)from_a, a->leading, (const void *)from_b, b->leading,
                    product.before, (void *)to, c->leading);
    else
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, c->n_rows, c->n_columns, a->n_columns,
                    1, (const void *)from_a, a->leading, (const void *)from_b, b->leading,
                    (float)product.before, (void *)to, c->leading);
    mark_matrix(c);
    return PHEMA_OK;
}

static cublasStatus_t queue_product(cublasHandle_t handle, cublasOperation_t of_a,
                                    cublasOperation_t of_b, double factor,
                                    const struct product *product)
{
    if (of_a != CUBLAS_OP_N || of_b != CUBLAS_OP_T || factor != 1 ||
        (product->before != 0 && product->before != 1) || !is_matrix(&product->a) ||
        !is_matrix(&product->b) || !is_matrix(&product->c) || !handle->stream || !handle->work ||
        handle->work_bytes < ((size_t)4 << 20) || handle->math != CUBLAS_PEDANTIC_MATH ||
        handle->pointers != CUBLAS_POINTER_MODE_HOST || handle->device != cudart_current_device()) {
        cudart_report("GEMM: operations, sizes, leading dimensions, stream, workspace, modes or "
                      "device are wrong");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return cudart_queue(handle->stream, multiply, product, sizeof(*product))
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int m, int n, int k, const double *factor, const double *a,
                              int leading_a, const double *b, int leading_b, const double *before,
                              double *c, int leading_c)
{
    struct product product = {true,
                              {a, m, k, leading_a, sizeof(double)},
                              {b, n, k, leading_b, sizeof(double)},
                              {c, m, n, leading_c, sizeof(double)},
                              *before};
    return queue_product(handle, of_a, of_b, *factor, &product);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int m, int n, int k, const float *factor, const float *a,
                              int leading_a, const float *b, int leading_b, const float *before,
                              float *c, int leading_c)
{
    struct product product = {false,
                              {a, m, k, leading_a, sizeof(float)},
                              {b, n, k, leading_b, sizeof(float)},
                              {c, m, n, leading_c, sizeof(float)},
                              (double)*before};
    return queue_product(handle, of_a, of_b, (double)*factor, &product);
}

/* ---- cuSOLVER ---- */

struct cusolverDnContext {
    int device;
};

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return CUSOLVER_STATUS_ALLOC_FAILED;
    (*out)->device = cudart_current_device();
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
    free(handle);
    return CUSOLVER_STATUS_SUCCESS;
}

/* An odd size, larger than LAPACK's: callers cannot guess it. */
static int work_size(int n)
{
    return 32 * n + 17;
}

cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t triangle,
                                             int n, double *a, int leading, int *n_work)
{
    struct phema_error err = {0};
    struct matrix matrix = {a, n, n, leading, sizeof(double)};
    uint8_t *view;
    if (triangle != CUBLAS_FILL_MODE_UPPER || !is_matrix(&matrix) ||
        view_matrix(&view, &matrix, handle->device, false, &err)) {
        cudart_report("cusolverDnDpotrf_bufferSize: a wrong triangle, size or matrix: %s",
                      err.message);
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    *n_work = work_size(n);
    return CUSOLVER_STATUS_SUCCESS;
}

/* Row-major lower is column-major upper. */
cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t triangle, int n,
                                  double *a, int leading, double *work, int n_work, int *info)
{
    struct phema_error err = {0};
    struct matrix matrix = {a, n, n, leading, sizeof(double)};
    uint8_t *view_a, *view_work, *view_info;
    if (triangle != CUBLAS_FILL_MODE_UPPER || !is_matrix(&matrix) || n_work < work_size(n) ||
        handle->device != cudart_current_device() ||
        view_matrix(&view_a, &matrix, handle->device, true, &err) ||
        ptx_view(&view_work, handle->device, work, (size_t)n_work * sizeof(double), false, &err) ||
        ptx_view(&view_info, handle->device, info, sizeof(*info), false, &err)) {
        cudart_report("cusolverDnDpotrf: a wrong triangle, size, matrix or workspace: %s",
                      err.message);
        return CUSOLVER_STATUS_INVALID_VALUE;
    }
    int found = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', n, (void *)view_a, leading);
    memset(view_work, 0xA5, (size_t)n_work * sizeof(double));
    memcpy(view_info, &found, sizeof(found));
    ptx_mark_written(info, sizeof(*info));
    return CUSOLVER_STATUS_SUCCESS;
}
