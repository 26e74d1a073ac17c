/* cuda_plugin.h - the interface of the CUDA plug-in: a table of C functions in a shared library.
 * The program loads it when a device is wanted, so it starts without CUDA and runs where CUDA is
 * absent. Only numbers, pointers and the structs below cross the interface. A plug-in of another
 * version, or with structs of another size, is refused.
 *
 * A device has lanes, one for each thread that feeds it. A lane has slots in host memory that the
 * device accesses directly. On the device it has memory for the tiles of all inputs and for the
 * rows of results. A lane executes its requests asynchronously, in the order in which they were
 * made. One thread at a time may use a lane. */
#ifndef PHEMA_CUDA_PLUGIN_H
#define PHEMA_CUDA_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PHEMA_CUDA_VERSION 1u
#define PHEMA_CUDA_SYMBOL  "posthoc_ema_cuda" /* a struct phema_cuda_plugin */

enum phema_cuda_result {
    PHEMA_CUDA_OK,
    PHEMA_CUDA_NO,     /* a pivot is not positive */
    PHEMA_CUDA_MEMORY, /* too little memory, of the device or of the host */
    PHEMA_CUDA_ABSENT, /* no driver, a driver that is too old, or no device */
    PHEMA_CUDA_FAILED  /* the device or a library failed */
};

/* The message of a failure: lower-case, no full stop. */
struct phema_cuda_message {
    char text[512];
};

struct phema_cuda_info {
    char name[256];
    uint64_t total_bytes, free_bytes;
    int32_t major, minor; /* compute capability */
};
/* The plug-in has no code for older devices. */
#define PHEMA_CUDA_LEAST_MAJOR 8

/* Dtypes that the device sums. */
enum phema_cuda_dtype {
    PHEMA_CUDA_F16,
    PHEMA_CUDA_BF16,
    PHEMA_CUDA_F32,
    PHEMA_CUDA_F64,
    PHEMA_CUDA_N_DTYPES
};

/* The memory of each lane of a device. Sizes are multiples of PHEMA_CUDA_ALIGNMENT; slot_bytes is a
 * multiple of PHEMA_CUDA_PAGE. */
struct phema_cuda_layout {
    uint64_t n_lanes;
    uint64_t n_slots, slot_bytes;   /* in the host's memory */
    uint64_t n_inputs, input_bytes; /* tiles of inputs */
    uint64_t n_rows, row_bytes;     /* results: tiles of outputs */
    uint64_t n_blocks;              /* of a tile */
    uint64_t panel_inputs;          /* inputs per cuBLAS panel; 0: cuBLAS is not used */
    uint64_t sum_bytes;             /* of a row of sums, for cuBLAS */
};
#define PHEMA_CUDA_ALIGNMENT ((uint64_t)256)
#define PHEMA_CUDA_PAGE      ((uint64_t)4096)
/* Targets that one thread sums together, in registers; the layout of weights depends on it. */
#define PHEMA_CUDA_GROUP ((uint64_t)8)
/* Workspace of cuBLAS. If cuBLAS chose it, results would depend on other work of cuBLAS. */
#define PHEMA_CUDA_BLAS_BYTES ((uint64_t)8 << 20)

/* Numbers [first, first + n) of a tile, which share their counts. */
struct phema_cuda_block {
    uint32_t first, n;
};
#define PHEMA_CUDA_MAX_BLOCK 2048

/* Special values and overflows found while a block was rounded. */
struct phema_cuda_counts {
    uint16_t n_overflow, n_nan, n_inf, unused;
};

/* rows[m] = the sum over k, in order, of weights[k * stride + m] times input tile inputs[k],
 * rounded once. */
struct phema_cuda_job {
    enum phema_cuda_dtype input, output;
    bool is_f64;            /* sums are double; otherwise float */
    bool saturates;         /* overflow becomes the largest number instead of infinity */
    bool uses_blas;         /* cuBLAS sums, in its own order; n_rows > PHEMA_CUDA_GROUP */
    const uint32_t *inputs; /* [n_inputs] */
    const double *weights;
    uint64_t stride;
    uint64_t n_inputs, n_rows;
    const struct phema_cuda_block *blocks; /* [n_blocks] cover all numbers of the tile */
    uint64_t n_blocks, n_numbers;
};

struct phema_cuda_device;

struct phema_cuda_plugin {
    uint32_t version, table_bytes, layout_bytes, job_bytes;
    const char *toolkit; /* "CUDA 13.0" */

    /* Number of devices. PHEMA_CUDA_ABSENT */
    enum phema_cuda_result (*count)(int32_t *n, struct phema_cuda_message *message);
    enum phema_cuda_result (*describe)(struct phema_cuda_info *out, int32_t index,
                                       struct phema_cuda_message *message);
    /* Allocates the memory of all lanes. After PHEMA_CUDA_MEMORY nothing stays allocated. */
    enum phema_cuda_result (*open)(struct phema_cuda_device **out, int32_t index,
                                   const struct phema_cuda_layout *layout,
                                   struct phema_cuda_message *message);
    void (*close)(struct phema_cuda_device *device); /* takes NULL */
    /* Free memory of the device now. */
    enum phema_cuda_result (*free_bytes)(uint64_t *bytes, struct phema_cuda_device *device,
                                         struct phema_cuda_message *message);

    uint8_t *(*slots)(struct phema_cuda_device *device, uint64_t lane); /* the first slot */
    /* [n_rows x n_blocks] of the last job; valid once one of its rows has arrived */
    const struct phema_cuda_counts *(*counts)(struct phema_cuda_device *device, uint64_t lane);

    /* Copies from a slot, which contains `from`, to the tile of an input. Until wait returns, the
     * slot must not be changed. */
    enum phema_cuda_result (*feed)(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                   const uint8_t *from, uint64_t bytes, uint64_t input,
                                   struct phema_cuda_message *message);
    /* Reads the job before it returns. All rows of the previous job must have arrived. */
    enum phema_cuda_result (*average)(struct phema_cuda_device *device, uint64_t lane,
                                      const struct phema_cuda_job *job,
                                      struct phema_cuda_message *message);
    /* Copies a row into a slot; it is complete when wait for the slot returns. */
    enum phema_cuda_result (*fetch)(struct phema_cuda_device *device, uint64_t lane, uint64_t row,
                                    uint64_t bytes, uint64_t slot,
                                    struct phema_cuda_message *message);
    /* Waits until the device no longer uses the slot. */
    enum phema_cuda_result (*wait)(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                   struct phema_cuda_message *message);

    /* Replaces matrix [n x n], symmetric, row-major, by L of L L^T: on and below the diagonal; the
     * rest is undefined. PHEMA_CUDA_NO, PHEMA_CUDA_MEMORY */
    enum phema_cuda_result (*factor)(int32_t index, double *matrix, uint64_t n,
                                     struct phema_cuda_message *message);
};

/* ---- Memory of a lane ---- */

struct phema_cuda_offsets {
    uint64_t inputs, rows, weights, indices, blocks, counts, panel, sums, blas; /* offsets */
    uint64_t bytes;                                                             /* in total */
    uint64_t job_bytes; /* from weights up to counts: copied in one transfer */
};

static inline uint64_t phema_cuda_align(uint64_t bytes)
{
    return (bytes + PHEMA_CUDA_ALIGNMENT - 1) / PHEMA_CUDA_ALIGNMENT * PHEMA_CUDA_ALIGNMENT;
}

static inline uint64_t phema_cuda_reserve(uint64_t *at, uint64_t bytes)
{
    uint64_t start = *at;
    *at += phema_cuda_align(bytes);
    return start;
}

/* Offsets on the device, from the start of the lane's memory. */
static inline struct phema_cuda_offsets phema_cuda_offsets(const struct phema_cuda_layout *layout)
{
    struct phema_cuda_offsets offsets;
    uint64_t at = 0;
    uint64_t n_groups = (layout->n_rows + PHEMA_CUDA_GROUP - 1) / PHEMA_CUDA_GROUP;
    bool has_blas = layout->panel_inputs > 0;
    offsets.inputs = phema_cuda_reserve(&at, layout->n_inputs * layout->input_bytes);
    offsets.rows = phema_cuda_reserve(&at, layout->n_rows * layout->row_bytes);
    offsets.weights =
        phema_cuda_reserve(&at, layout->n_inputs * n_groups * PHEMA_CUDA_GROUP * sizeof(double));
    offsets.indices = phema_cuda_reserve(&at, layout->n_inputs * sizeof(uint32_t));
    offsets.blocks = phema_cuda_reserve(&at, layout->n_blocks * sizeof(struct phema_cuda_block));
    offsets.job_bytes = at - offsets.weights;
    offsets.counts = phema_cuda_reserve(&at, layout->n_rows * layout->n_blocks *
                                                 sizeof(struct phema_cuda_counts));
    offsets.panel = phema_cuda_reserve(&at, layout->panel_inputs * layout->sum_bytes);
    offsets.sums = phema_cuda_reserve(&at, has_blas ? layout->n_rows * layout->sum_bytes : 0);
    offsets.blas = phema_cuda_reserve(&at, has_blas ? PHEMA_CUDA_BLAS_BYTES : 0);
    offsets.bytes = at;
    return offsets;
}

/* Host memory of a lane: slots, a job to be copied, counts. Lanes begin on pages. */
static inline uint64_t phema_cuda_host_bytes(const struct phema_cuda_layout *layout)
{
    uint64_t counts = layout->n_rows * layout->n_blocks * sizeof(struct phema_cuda_counts);
    uint64_t bytes =
        layout->n_slots * layout->slot_bytes + phema_cuda_offsets(layout).job_bytes + counts;
    return (bytes + PHEMA_CUDA_PAGE - 1) / PHEMA_CUDA_PAGE * PHEMA_CUDA_PAGE;
}

#endif
