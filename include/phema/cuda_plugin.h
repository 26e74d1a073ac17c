/* cuda_plugin.h - the one door of the CUDA module: a table of C functions in a shared library that
 * the program opens when a device is wanted, so that it starts without any of CUDA and runs where
 * there is none. Nothing crosses it but numbers, pointers and the structs below; a module of
 * another version, or with structs of another size, is refused.
 *
 * A device has lanes, one for each thread that feeds it. A lane has slots in the host's memory that
 * the device reads and writes by itself, and on the device places for the tiles of all inputs and
 * for the rows of results. What is asked of a lane is done in that order, behind the thread's back;
 * a lane is used by one thread at a time. */
#ifndef PHEMA_CUDA_PLUGIN_H
#define PHEMA_CUDA_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PHEMA_CUDA_VERSION 1u
#define PHEMA_CUDA_SYMBOL  "posthoc_ema_cuda" /* a struct phema_cuda_module */

enum phema_cuda_result {
    PHEMA_CUDA_OK,
    PHEMA_CUDA_NO,     /* a pivot is not positive */
    PHEMA_CUDA_MEMORY, /* not enough of it, the device's or that of the host */
    PHEMA_CUDA_ABSENT, /* no driver, one that is too old, no device */
    PHEMA_CUDA_FAILED  /* the device, or a library */
};

/* What is said of a failure: lower-case, no full stop. */
struct phema_cuda_message {
    char text[512];
};

struct phema_cuda_info {
    char name[256];
    uint64_t total_bytes, free_bytes;
    int32_t major, minor; /* of the compute capability */
};
/* Older ones have no code in the module. */
#define PHEMA_CUDA_LEAST_MAJOR 8

/* Dtypes that are added up on the device. */
enum phema_cuda_dtype {
    PHEMA_CUDA_F16,
    PHEMA_CUDA_BF16,
    PHEMA_CUDA_F32,
    PHEMA_CUDA_F64,
    PHEMA_CUDA_N_DTYPES
};

/* What each lane of a device has. Bytes are multiples of PHEMA_CUDA_ALIGNMENT, those of slots of
 * PHEMA_CUDA_PAGE. */
struct phema_cuda_layout {
    uint64_t n_lanes;
    uint64_t n_slots, slot_bytes;   /* in the host's memory */
    uint64_t n_inputs, input_bytes; /* tiles of inputs */
    uint64_t n_rows, row_bytes;     /* results: tiles of outputs */
    uint64_t n_blocks;              /* of a tile */
    uint64_t panel_inputs;          /* at a time, for cuBLAS; 0: it is not used */
    uint64_t sum_bytes;             /* of a row of sums, for cuBLAS */
};
#define PHEMA_CUDA_ALIGNMENT ((uint64_t)256)
#define PHEMA_CUDA_PAGE      ((uint64_t)4096)
/* Targets that are added up at once, in registers; weights are laid out for so many. */
#define PHEMA_CUDA_GROUP ((uint64_t)8)
/* What cuBLAS works in: its own choice would depend on what else it does at the moment. */
#define PHEMA_CUDA_BLAS_BYTES ((uint64_t)8 << 20)

/* Numbers [first, first + n) of a tile, counted together. */
struct phema_cuda_block {
    uint32_t first, n;
};
#define PHEMA_CUDA_MAX_BLOCK 2048

/* What happened while a block was rounded. */
struct phema_cuda_counts {
    uint16_t n_overflow, n_nan, n_inf, unused;
};

/* rows[m] = the sum of weights[k * stride + m] times the input in place inputs[k], in the order of
 * k, rounded once. */
struct phema_cuda_job {
    enum phema_cuda_dtype input, output;
    bool is_f64;            /* the sums; they are float otherwise */
    bool saturates;         /* what is too large becomes the largest number instead of infinity */
    bool uses_blas;         /* cuBLAS adds up, in an order of its own; n_rows > PHEMA_CUDA_GROUP */
    const uint32_t *inputs; /* [n_inputs] */
    const double *weights;
    uint64_t stride;
    uint64_t n_inputs, n_rows;
    const struct phema_cuda_block *blocks; /* [n_blocks], of all numbers of the tile */
    uint64_t n_blocks, n_numbers;
};

struct phema_cuda_device;

struct phema_cuda_module {
    uint32_t version, table_bytes, layout_bytes, job_bytes;
    const char *toolkit; /* "CUDA 13.0" */

    /* Devices there are. PHEMA_CUDA_ABSENT */
    enum phema_cuda_result (*count)(int32_t *n, struct phema_cuda_message *message);
    enum phema_cuda_result (*describe)(struct phema_cuda_info *out, int32_t index,
                                       struct phema_cuda_message *message);
    /* All memory that lanes need is taken here. PHEMA_CUDA_MEMORY leaves nothing behind. */
    enum phema_cuda_result (*open)(struct phema_cuda_device **out, int32_t index,
                                   const struct phema_cuda_layout *layout,
                                   struct phema_cuda_message *message);
    void (*close)(struct phema_cuda_device *device); /* takes NULL */
    /* What the device has free now. */
    enum phema_cuda_result (*free_bytes)(uint64_t *bytes, struct phema_cuda_device *device,
                                         struct phema_cuda_message *message);

    uint8_t *(*slots)(struct phema_cuda_device *device, uint64_t lane); /* the first of them */
    /* [n_rows x n_blocks] of the last job, when a row of it has arrived */
    const struct phema_cuda_counts *(*counts)(struct phema_cuda_device *device, uint64_t lane);

    /* from, which lies in a slot, to the place of an input; the slot is the lane's until waited for
     */
    enum phema_cuda_result (*feed)(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                   const uint8_t *from, uint64_t bytes, uint64_t input,
                                   struct phema_cuda_message *message);
    /* What is in the job is read before this returns. Rows of the job before must have arrived. */
    enum phema_cuda_result (*average)(struct phema_cuda_device *device, uint64_t lane,
                                      const struct phema_cuda_job *job,
                                      struct phema_cuda_message *message);
    /* A row into a slot; both are there when the slot was waited for. */
    enum phema_cuda_result (*fetch)(struct phema_cuda_device *device, uint64_t lane, uint64_t row,
                                    uint64_t bytes, uint64_t slot,
                                    struct phema_cuda_message *message);
    /* Until the slot is the thread's again, if it is not. */
    enum phema_cuda_result (*wait)(struct phema_cuda_device *device, uint64_t lane, uint64_t slot,
                                   struct phema_cuda_message *message);

    /* L of L L^T = matrix [n x n], symmetric, row-major; below the diagonal and on it, above it
     * anything. PHEMA_CUDA_NO, PHEMA_CUDA_MEMORY */
    enum phema_cuda_result (*factor)(int32_t index, double *matrix, uint64_t n,
                                     struct phema_cuda_message *message);
};

/* ---- Where things lie in a lane's memory ---- */

struct phema_cuda_places {
    uint64_t inputs, rows, weights, indices, blocks, counts, panel, sums, blas; /* offsets */
    uint64_t bytes;                                                             /* of all */
    uint64_t job_bytes; /* from weights on up to counts: copied as one */
};

static inline uint64_t phema_cuda_aligned(uint64_t bytes)
{
    return (bytes + PHEMA_CUDA_ALIGNMENT - 1) / PHEMA_CUDA_ALIGNMENT * PHEMA_CUDA_ALIGNMENT;
}

static inline uint64_t phema_cuda_next(uint64_t *at, uint64_t bytes)
{
    uint64_t start = *at;
    *at += phema_cuda_aligned(bytes);
    return start;
}

/* On the device, counted from the start of the lane. */
static inline struct phema_cuda_places phema_cuda_places(const struct phema_cuda_layout *layout)
{
    struct phema_cuda_places places;
    uint64_t at = 0;
    uint64_t n_groups = (layout->n_rows + PHEMA_CUDA_GROUP - 1) / PHEMA_CUDA_GROUP;
    bool has_blas = layout->panel_inputs > 0;
    places.inputs = phema_cuda_next(&at, layout->n_inputs * layout->input_bytes);
    places.rows = phema_cuda_next(&at, layout->n_rows * layout->row_bytes);
    places.weights =
        phema_cuda_next(&at, layout->n_inputs * n_groups * PHEMA_CUDA_GROUP * sizeof(double));
    places.indices = phema_cuda_next(&at, layout->n_inputs * sizeof(uint32_t));
    places.blocks = phema_cuda_next(&at, layout->n_blocks * sizeof(struct phema_cuda_block));
    places.job_bytes = at - places.weights;
    places.counts =
        phema_cuda_next(&at, layout->n_rows * layout->n_blocks * sizeof(struct phema_cuda_counts));
    places.panel = phema_cuda_next(&at, layout->panel_inputs * layout->sum_bytes);
    places.sums = phema_cuda_next(&at, has_blas ? layout->n_rows * layout->sum_bytes : 0);
    places.blas = phema_cuda_next(&at, has_blas ? PHEMA_CUDA_BLAS_BYTES : 0);
    places.bytes = at;
    return places;
}

/* In the host's memory, of a lane: slots, a job on its way, counts; lanes begin on pages. */
static inline uint64_t phema_cuda_host_bytes(const struct phema_cuda_layout *layout)
{
    uint64_t counts = layout->n_rows * layout->n_blocks * sizeof(struct phema_cuda_counts);
    uint64_t bytes =
        layout->n_slots * layout->slot_bytes + phema_cuda_places(layout).job_bytes + counts;
    return (bytes + PHEMA_CUDA_PAGE - 1) / PHEMA_CUDA_PAGE * PHEMA_CUDA_PAGE;
}

#endif
