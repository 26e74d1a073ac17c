/* cudart.h - streams of the CUDA runtime that interprets kernels, for the stand-ins of cuBLAS and
 * cuSOLVER. */
#ifndef TESTS_PTX_CUDART_H
#define TESTS_PTX_CUDART_H

#include <cuda_runtime_api.h>

#include "phema/error.h"

/* Queues work on a stream. It is executed when something waits for it; arguments are copied. */
typedef enum phema_status cudart_work(const void *arguments, int device, struct phema_error *err);
cudaError_t cudart_queue(cudaStream_t stream, cudart_work *work, const void *arguments,
                         size_t bytes);
int cudart_current_device(void);
/* Writes a message that names the call, for the next cudaGetErrorString, and to stderr. */
void cudart_report(const char *format, ...) PHEMA_PRINTF(1, 2);

#endif
