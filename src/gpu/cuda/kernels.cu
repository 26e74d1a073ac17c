// SPDX-License-Identifier: Apache-2.0
/* kernels.cu - sums, rounding and counting on the device. A thread block handles one block of a
 * tile and one group of targets. Each thread keeps the sums of a few numbers for all targets of the
 * group in registers and adds the inputs in their order, so every sum has the same bits as on the
 * CPU. Inputs are read again for each group: device memory is fast compared with the copy from the
 * host. Counts are per block, because the caller discards sums of blocks that are equal in all
 * inputs. */
#include <cuda_runtime_api.h>

#include "runtime.h"
#include "scalar.h"

namespace
{

constexpr unsigned N_THREADS = 256;
constexpr unsigned PER_THREAD = 4; /* numbers per step */
constexpr unsigned STEP = N_THREADS * PER_THREAD;
/* Inputs whose weights fit in shared memory together: 4 KiB of doubles per group. */
constexpr unsigned N_SHARED_INPUTS = 64;

/* Thread blocks that fit on a multiprocessor together, at least: 48 registers for one target, 128
 * and 80 for a group. Before compute capability 10.0 ptxas chooses that well by itself; for 10.0
 * its own choice would spill registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define AVERAGE_BOUNDS __launch_bounds__(N_THREADS, N == 1 ? 5 : sizeof(Sum) == 8 ? 2 : 3)
#else
#define AVERAGE_BOUNDS __launch_bounds__(N_THREADS)
#endif

__device__ __forceinline__ double add(double weight, double x, double sum)
{
    return scalar_add_f64(weight, x, sum);
}

__device__ __forceinline__ float add(float weight, float x, float sum)
{
    return scalar_add_f32(weight, x, sum);
}

/* Counts of one thread block; integer additions, so their order does not matter. */
template <unsigned N> struct tally {
    unsigned n_found[N][4];
};

template <unsigned N> __device__ void tally_clear(tally<N> &counts)
{
    for (unsigned i = threadIdx.x; i < N * 4; i += N_THREADS)
        counts.n_found[i / 4][i % 4] = 0;
}

template <unsigned N>
__device__ void tally_write(const runtime_job &job, const tally<N> &counts, uint64_t first_row,
                            uint64_t block)
{
    unsigned m = threadIdx.x;
    if (m >= N || first_row + m >= job.n_rows)
        return;
    phema_cuda_counts found = {};
    found.n_overflow = static_cast<uint16_t>(counts.n_found[m][SCALAR_OVERFLOWS]);
    found.n_nan = static_cast<uint16_t>(counts.n_found[m][SCALAR_IS_NAN]);
    found.n_inf = static_cast<uint16_t>(counts.n_found[m][SCALAR_IS_INFINITE]);
    job.counts[(first_row + m) * job.n_blocks + block] = found;
}

/* Rounds and counts one number. Long: each kernel contains it once, in a loop. */
__device__ __forceinline__ void store_number(const runtime_job &job, unsigned (&n_found)[4],
                                             uint8_t *row, uint64_t i, double sum)
{
    const scalar_rounding rounding = scalar_store(job.output, row, i, sum, job.saturates);
    if (rounding != SCALAR_FITS)
        atomicAdd(&n_found[rounding], 1u);
}

/* chosen = sums[m]. Registers have no index, so each m has its own moves. All threads of a block
 * take the same branch. */
template <typename Sum, unsigned N, unsigned M = 0>
__device__ __forceinline__ void choose_target(Sum (&chosen)[PER_THREAD],
                                              const Sum (&sums)[N][PER_THREAD], unsigned m)
{
    if constexpr (M + 1 < N) {
        if (m != M) {
            choose_target<Sum, N, M + 1>(chosen, sums, m);
            return;
        }
    }
#pragma unroll
    for (unsigned e = 0; e < PER_THREAD; e++)
        chosen[e] = sums[M][e];
}

template <typename Sum> __device__ __forceinline__ void shift(Sum (&numbers)[PER_THREAD])
{
#pragma unroll
    for (unsigned e = 0; e + 1 < PER_THREAD; e++)
        numbers[e] = numbers[e + 1];
}

template <typename Sum, phema_cuda_dtype In, unsigned N>
__global__ void AVERAGE_BOUNDS average_kernel(runtime_job job)
{
    __shared__ Sum weights[N_SHARED_INPUTS * N];
    __shared__ uint32_t indices[N_SHARED_INPUTS];
    __shared__ tally<N> counts;
    const phema_cuda_block block = job.blocks[blockIdx.x];
    const uint64_t first_row = static_cast<uint64_t>(blockIdx.y) * N;
    const Sum *group = static_cast<const Sum *>(job.weights) + blockIdx.y * job.n_inputs * N;
    tally_clear(counts);

    for (unsigned base = 0; base < block.n; base += STEP) {
        Sum sums[N][PER_THREAD];
#pragma unroll
        for (unsigned m = 0; m < N; m++)
#pragma unroll
            for (unsigned e = 0; e < PER_THREAD; e++)
                sums[m][e] = 0;

        for (uint64_t first = 0; first < job.n_inputs; first += N_SHARED_INPUTS) {
            const uint64_t left = job.n_inputs - first;
            const unsigned n =
                left < N_SHARED_INPUTS ? static_cast<unsigned>(left) : N_SHARED_INPUTS;
            __syncthreads(); /* the old weights are used, counts are clear */
            for (unsigned i = threadIdx.x; i < n * N; i += N_THREADS)
                weights[i] = group[first * N + i];
            for (unsigned i = threadIdx.x; i < n; i += N_THREADS)
                indices[i] = job.indices[first + i];
            __syncthreads();
#pragma unroll 2
            for (unsigned k = 0; k < n; k++) {
                const uint8_t *input = job.inputs + indices[k] * job.input_bytes;
#pragma unroll
                for (unsigned e = 0; e < PER_THREAD; e++) {
                    const unsigned i = base + e * N_THREADS + threadIdx.x;
                    if (i >= block.n)
                        continue;
                    const Sum x = static_cast<Sum>(scalar_load(In, input, block.first + i));
#pragma unroll
                    for (unsigned m = 0; m < N; m++)
                        sums[m][e] = add(weights[k * N + m], x, sums[m][e]);
                }
            }
        }
        __syncthreads(); /* counts are clear, also without inputs */

#pragma unroll 1
        for (unsigned m = 0; m < N && first_row + m < job.n_rows; m++) {
            uint8_t *row = job.rows + (first_row + m) * job.row_bytes;
            Sum chosen[PER_THREAD];
            choose_target<Sum, N>(chosen, sums, m);
#pragma unroll 1
            for (unsigned i = base + threadIdx.x; i < block.n && i < base + STEP; i += N_THREADS) {
                store_number(job, counts.n_found[m], row, block.first + i,
                             static_cast<double>(chosen[0]));
                shift(chosen);
            }
        }
    }
    __syncthreads();
    tally_write(job, counts, first_row, blockIdx.x);
}

/* Rounds existing sums: one thread block per block of a tile and target. */
template <typename Sum> __global__ void __launch_bounds__(N_THREADS) round_kernel(runtime_job job)
{
    __shared__ tally<1> counts;
    const phema_cuda_block block = job.blocks[blockIdx.x];
    const uint64_t m = blockIdx.y;
    const Sum *sums = reinterpret_cast<const Sum *>(job.sums + m * job.sum_bytes);
    tally_clear(counts);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < block.n; i += N_THREADS) {
        store_number(job, counts.n_found[0], job.rows + m * job.row_bytes, block.first + i,
                     static_cast<double>(sums[block.first + i]));
    }
    __syncthreads();
    tally_write(job, counts, m, blockIdx.x);
}

template <typename Sum>
__global__ void __launch_bounds__(N_THREADS)
    widen_kernel(uint8_t *panel, runtime_job job, uint64_t first, uint64_t n_numbers)
{
    const uint32_t index = job.indices[first + blockIdx.y];
    const uint8_t *input = job.inputs + index * job.input_bytes;
    Sum *row = reinterpret_cast<Sum *>(panel + blockIdx.y * job.sum_bytes);
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * N_THREADS;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * N_THREADS + threadIdx.x; i < n_numbers;
         i += stride)
        row[i] = static_cast<Sum>(scalar_load(job.input, input, i));
}

enum phema_cuda_result check_launch(struct phema_cuda_message *message)
{
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        return PHEMA_CUDA_OK;
    return runtime_fail(message, PHEMA_CUDA_FAILED, "a kernel does not start: %s",
                        cudaGetErrorString(error));
}

/* Groups are the grid's second dimension, at most 65535; there are at most 8192 targets. */
template <typename Sum, phema_cuda_dtype In, unsigned N>
void launch(const runtime_job &job, cudaStream_t stream)
{
    const dim3 grid(static_cast<unsigned>(job.n_blocks),
                    static_cast<unsigned>((job.n_rows + N - 1) / N));
    average_kernel<Sum, In, N><<<grid, N_THREADS, 0, stream>>>(job);
}

template <typename Sum, phema_cuda_dtype In>
void launch_group(const runtime_job &job, cudaStream_t stream)
{
    if (job.group_size == 1)
        launch<Sum, In, 1>(job, stream);
    else
        launch<Sum, In, PHEMA_CUDA_GROUP>(job, stream);
}

/* Returns false for F64 inputs with float sums: F64 is summed in doubles only. */
template <typename Sum> bool launch_input(const runtime_job &job, cudaStream_t stream)
{
    switch (job.input) {
    case PHEMA_CUDA_F16:
        launch_group<Sum, PHEMA_CUDA_F16>(job, stream);
        return true;
    case PHEMA_CUDA_BF16:
        launch_group<Sum, PHEMA_CUDA_BF16>(job, stream);
        return true;
    case PHEMA_CUDA_F32:
        launch_group<Sum, PHEMA_CUDA_F32>(job, stream);
        return true;
    default:
        if constexpr (sizeof(Sum) == sizeof(double))
            launch_group<Sum, PHEMA_CUDA_F64>(job, stream);
        return sizeof(Sum) == sizeof(double);
    }
}

} // namespace

extern "C" enum phema_cuda_result runtime_average(const struct runtime_job *average,
                                                  struct runtime_stream *stream,
                                                  struct phema_cuda_message *message)
{
    if (!average->n_blocks || !average->n_rows)
        return PHEMA_CUDA_OK;
    const cudaStream_t queue = reinterpret_cast<cudaStream_t>(stream);
    const bool is_known = average->is_f64 ? launch_input<double>(*average, queue)
                                          : launch_input<float>(*average, queue);
    if (!is_known)
        return runtime_fail(message, PHEMA_CUDA_FAILED, "F64 is added up in doubles only");
    return check_launch(message);
}

extern "C" enum phema_cuda_result runtime_round(const struct runtime_job *average,
                                                struct runtime_stream *stream,
                                                struct phema_cuda_message *message)
{
    if (!average->n_blocks || !average->n_rows)
        return PHEMA_CUDA_OK;
    const dim3 grid(static_cast<unsigned>(average->n_blocks),
                    static_cast<unsigned>(average->n_rows));
    if (average->is_f64)
        round_kernel<double>
            <<<grid, N_THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(*average);
    else
        round_kernel<float>
            <<<grid, N_THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(*average);
    return check_launch(message);
}

extern "C" enum phema_cuda_result runtime_widen(uint8_t *panel, const struct runtime_job *average,
                                                uint64_t first, uint64_t n, uint64_t n_numbers,
                                                struct runtime_stream *stream,
                                                struct phema_cuda_message *message)
{
    if (!n || !n_numbers)
        return PHEMA_CUDA_OK;
    const uint64_t n_steps = (n_numbers + STEP - 1) / STEP;
    const dim3 grid(static_cast<unsigned>(n_steps < 1024 ? n_steps : 1024),
                    static_cast<unsigned>(n));
    if (average->is_f64)
        widen_kernel<double><<<grid, N_THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
            panel, *average, first, n_numbers);
    else
        widen_kernel<float><<<grid, N_THREADS, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
            panel, *average, first, n_numbers);
    return check_launch(message);
}
