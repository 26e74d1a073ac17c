/* gpu.h - GPUs that sum tiles: the option --device, the CUDA plug-in (cuda_plugin.h, loaded only
 * when a GPU is wanted), GPU memory of a run, and lanes, through which threads feed GPUs. Results
 * have the same bits as those of accumulate.h, except with cuBLAS. Messages name the GPU. Safe from
 * any thread; one thread at a time may use a lane. */
#ifndef PHEMA_GPU_H
#define PHEMA_GPU_H

#include "phema/cuda_plugin.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/solver.h"

/* ---- device_option.c: --device ---- */

enum phema_device_kind { PHEMA_DEVICE_CPU, PHEMA_DEVICE_AUTO, PHEMA_DEVICE_CUDA };

#define PHEMA_MAX_GPUS 16
/* Default share of a GPU's free memory; the rest is left to other processes. */
#define PHEMA_GPU_FRACTION 0.9

struct phema_gpu_options {
    enum phema_device_kind kind;
    bool uses_all;
    bool is_unnumbered;              /* "cuda": the first device, or of a team each in turn */
    int32_t indices[PHEMA_MAX_GPUS]; /* CUDA device numbers, each once */
    size_t n;                        /* number of indices; ignored with uses_all */
    uint64_t memory_bytes;           /* per GPU; 0: memory_fraction of the free memory */
    double memory_fraction;          /* 0: PHEMA_GPU_FRACTION */
    bool uses_blas;                  /* cuBLAS for more than PHEMA_CUDA_GROUP targets */
    /* This process and the number of those that share the GPUs of a machine: each takes one, in
     * turn, and its share of the free memory. 0 of 0: this process takes all. */
    unsigned local_rank, local_size;
};

/* "auto", "cpu", "cuda", "cuda:1", "cuda:0,1", "cuda:all"; NULL: auto. The memory members of
 * options keep their values. PHEMA_ERR_USAGE */
PHEMA_FALLIBLE phema_gpu_options_parse(struct phema_gpu_options *options, const char *text,
                                       struct phema_error *err);

/* Measured bytes of inputs per second. */
struct phema_gpu_rates {
    double processor; /* summed by all CPU threads, for all targets */
    double reading;   /* only read by them */
    double gpu;       /* copied to one GPU and summed there */
    unsigned n_gpus;
};
/* True when GPUs are clearly faster; why receives the two rates as text, in both cases. */
bool phema_gpu_wins(char *why, size_t why_size, const struct phema_gpu_rates *rates);

/* ---- memory_fit.c: GPU memory, computed without a GPU ---- */

/* Larger tiles do not make copies to the GPU faster. */
#define PHEMA_GPU_TILE_BYTES ((uint64_t)1 << 20)
#define PHEMA_GPU_TILE_ELEMS ((uint64_t)1 << 20)
/* In copies of smaller tiles, latency dominates. */
#define PHEMA_GPU_LEAST_TILE_ELEMS ((uint64_t)4 << 10)

struct phema_gpu_demand {
    uint64_t n_in[PHEMA_N_DTYPES];      /* elements that the GPU sums, by input dtype */
    uint64_t n_out[PHEMA_N_DTYPES];     /* the same elements, by output dtype */
    uint64_t n_through[PHEMA_N_DTYPES]; /* all elements that pass through slots, read or written */
    uint64_t slot_extra_bytes;          /* per slot, for reads of whole pages */
    uint64_t n_inputs, n_rows;          /* snapshots and targets of a tile, at most */
    uint64_t numbers_per_elem;          /* 2 with complex elements */
    uint64_t block_elems,
        n_more_blocks; /* a tile has a block per block_elems, plus n_more_blocks */
    uint64_t n_slots;
    uint64_t max_tile_elems;
    unsigned n_threads; /* that feed all GPUs */
    unsigned n_gpus;
    bool is_f64; /* some sums are in float64 */
    bool uses_blas;
};

struct phema_gpu_fit {
    struct phema_cuda_layout layout; /* of each GPU */
    uint64_t tile_elems;
    uint64_t n_tile_passes; /* over the inputs of a tile, on the GPU, for all targets */
    uint64_t gpu_bytes;     /* per GPU */
    unsigned n_threads;
};

/* The largest tiles that fit the limit. When memory is tight the fit first reduces the rows of
 * targets to one group, then uses smaller tiles, then fewer threads.
 * PHEMA_ERR_RESOURCE  the smallest tile of one thread does not fit; the message names the bytes
 *                     needed */
PHEMA_FALLIBLE phema_gpu_fit(struct phema_gpu_fit *out, const struct phema_gpu_demand *demand,
                             uint64_t limit_bytes, struct phema_error *err);

/* True for F16, BF16, F32, F64, and for C64, which is summed as two F32. */
bool phema_gpu_can_sum(enum phema_dtype dtype);
enum phema_cuda_dtype phema_gpu_dtype(enum phema_dtype dtype);

/* ---- gpus.c: the GPUs of a run ---- */

struct phema_gpus;

/* Whether the GPUs are there, and fails as phema_gpus_open, which also looks at each. */
PHEMA_FALLIBLE phema_gpus_check(const struct phema_gpu_options *options, struct phema_error *err);

/* Loads the plug-in and finds the GPUs; allocates no GPU memory beyond CUDA's own.
 * PHEMA_ERR_RESOURCE  no plug-in, no driver, no such GPU, or a GPU that is too old; the
 *                     message is one sentence */
PHEMA_FALLIBLE phema_gpus_open(struct phema_gpus **out, const struct phema_gpu_options *options,
                               struct phema_error *err);
void phema_gpus_close(struct phema_gpus *gpus); /* takes NULL */

/* True when a driver seems to be installed; cheap, loads nothing. */
bool phema_gpu_may_exist(void);

unsigned phema_gpus_n(const struct phema_gpus *gpus);
/* "cuda:0 (NVIDIA H200)", "cuda:0,1 (2 x NVIDIA H200)" */
const char *phema_gpus_format(const struct phema_gpus *gpus);
/* Bytes that may be allocated on each GPU. */
uint64_t phema_gpus_limit(const struct phema_gpus *gpus);

/* Allocates the memory of all lanes.
 * PHEMA_NO            a GPU or the host has too little memory: nothing stays allocated, the
 *                     message is the GPU's, and the caller may try a smaller layout
 * PHEMA_ERR_RESOURCE  the GPU failed */
PHEMA_FALLIBLE phema_gpus_start(struct phema_gpus *gpus, const struct phema_cuda_layout *layout,
                                struct phema_error *err);
void phema_gpus_stop(struct phema_gpus *gpus);

/* Of all GPUs together. */
struct phema_gpu_usage {
    uint64_t allocated_bytes; /* by lanes */
    uint64_t reserved_bytes;  /* less free memory than at opening, CUDA's own use included */
};
struct phema_gpu_usage phema_gpus_usage(const struct phema_gpus *gpus);

/* ---- gpus.c: lanes, see cuda_plugin.h ---- */

struct phema_lane {
    const struct phema_gpus *gpus;
    unsigned gpu;
    uint64_t index;
};

/* The lane of thread i; threads are assigned to GPUs in turn. */
struct phema_lane phema_gpus_lane(const struct phema_gpus *gpus, unsigned i);
uint8_t *phema_lane_slots(const struct phema_lane *lane);
const struct phema_cuda_counts *phema_lane_counts(const struct phema_lane *lane);
PHEMA_FALLIBLE phema_lane_feed(const struct phema_lane *lane, uint64_t slot, const uint8_t *from,
                               uint64_t bytes, uint64_t input, struct phema_error *err);
PHEMA_FALLIBLE phema_lane_average(const struct phema_lane *lane, const struct phema_cuda_job *job,
                                  struct phema_error *err);
/* Waits for the slot first. */
PHEMA_FALLIBLE phema_lane_fetch(const struct phema_lane *lane, uint64_t row, uint64_t bytes,
                                uint64_t slot, struct phema_error *err);
PHEMA_FALLIBLE phema_lane_wait(const struct phema_lane *lane, uint64_t slot,
                               struct phema_error *err);

/* Cholesky by cuSOLVER on the first GPU, for the solver; the plug-in is loaded at the first use. */
const struct phema_factorer *phema_gpu_factorer(void);

#endif
