/* gpu.h - graphics processors that add up tiles: which are asked for, the module that knows them
 * (cuda.h, opened only when one is wanted), the memory that a run takes of them, and lanes, through
 * which threads feed them. What the device gives has the bits that accumulate.h gives, cuBLAS
 * apart. Messages name the device. Safe from any thread; a lane is used by one at a time. */
#ifndef PHEMA_GPU_H
#define PHEMA_GPU_H

#include "phema/cuda_plugin.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/solver.h"

/* ---- What is asked for ---- */

enum phema_device_kind { PHEMA_DEVICE_CPU, PHEMA_DEVICE_AUTO, PHEMA_DEVICE_CUDA };

#define PHEMA_MAX_DEVICES 16
/* Of what a device has free, where nothing else is asked for: the rest is for who else is there. */
#define PHEMA_DEVICE_FRACTION 0.9

struct phema_device_request {
    enum phema_device_kind kind;
    bool takes_all;
    int32_t indices[PHEMA_MAX_DEVICES]; /* as CUDA counts them, each once */
    size_t n;                           /* CUDA: of those, unless it takes all */
    uint64_t memory_bytes;              /* of each device; 0: a part of what is free: */
    double memory_fraction;             /* 0: PHEMA_DEVICE_FRACTION */
    bool uses_blas;                     /* cuBLAS for more than PHEMA_CUDA_GROUP targets */
};

/* "auto", "cpu", "cuda", "cuda:1", "cuda:0,1", "cuda:all"; NULL: auto. What is asked of memory
 * stays. PHEMA_ERR_USAGE */
PHEMA_FALLIBLE phema_device_request_parse(struct phema_device_request *request, const char *text,
                                          struct phema_error *err);

/* ---- Memory, worked out without a device ---- */

/* Larger tiles gain nothing on their way to the device. */
#define PHEMA_DEVICE_TILE_BYTES ((uint64_t)1 << 20)
#define PHEMA_DEVICE_TILE_ELEMS ((uint64_t)1 << 20)
/* Below this the copies are mostly waiting. */
#define PHEMA_DEVICE_LEAST_TILE_ELEMS ((uint64_t)4 << 10)

struct phema_device_demand {
    uint64_t n_in[PHEMA_N_DTYPES];       /* elements that the device adds up */
    uint64_t n_out[PHEMA_N_DTYPES];      /* the same as they are written */
    uint64_t n_through[PHEMA_N_DTYPES];  /* all that goes through slots, read or written */
    uint64_t slot_room;                  /* bytes more, for what is read in whole pages */
    uint64_t n_inputs, n_rows;           /* of a tile: snapshots and targets, at most */
    uint64_t numbers_per_elem;           /* 2 with complex elements */
    uint64_t block_elems, n_more_blocks; /* a tile has a block for so many, and some more */
    uint64_t n_slots;
    uint64_t max_tile_elems;
    unsigned n_threads; /* that feed all devices */
    unsigned n_devices;
    bool is_f64; /* some sums are */
    bool uses_blas;
};

struct phema_device_fit {
    struct phema_cuda_layout layout; /* of each device */
    uint64_t tile_elems;
    uint64_t n_tile_passes; /* over the inputs of a tile, on the device, for all targets */
    uint64_t device_bytes;  /* of each device */
    uint64_t host_bytes;    /* that devices read and write, of all threads */
    unsigned n_threads;
};

/* The largest tiles that the limit has room for. Where it is tight, first as few targets at a time
 * as are added up together anyway, then smaller tiles, then fewer threads.
 * PHEMA_ERR_RESOURCE  not even the smallest tile of one thread fits: the message says how much
 * would
 */
PHEMA_FALLIBLE phema_device_fit(struct phema_device_fit *out,
                                const struct phema_device_demand *demand, uint64_t limit_bytes,
                                struct phema_error *err);

/* F16, BF16, F32, F64, and C64 as two F32. */
bool phema_device_takes(enum phema_dtype dtype);
enum phema_cuda_dtype phema_device_dtype(enum phema_dtype dtype);

/* ---- Whether to ---- */

/* Bytes of inputs in a second, as measured: summed by all threads of the processor for all targets;
 * only read by them; sent to one device and summed there. */
struct phema_device_rates {
    double processor, reading, device;
    unsigned n_devices;
};
bool phema_device_wins(char *why, size_t why_size, const struct phema_device_rates *rates);

/* ---- Devices ---- */

struct phema_devices;

/* Loads the module and finds the devices; takes no memory of them but what CUDA itself needs.
 * PHEMA_ERR_RESOURCE  no module, no driver, no such device, one that is too old: one sentence */
PHEMA_FALLIBLE phema_devices_open(struct phema_devices **out,
                                  const struct phema_device_request *request,
                                  struct phema_error *err);
void phema_devices_close(struct phema_devices *devices); /* takes NULL */

/* Whether a driver seems to be there: cheap, and without loading anything. */
bool phema_device_may_exist(void);

unsigned phema_devices_n(const struct phema_devices *devices);
/* "cuda:0 (NVIDIA H200)", "cuda:0,1 (2 x NVIDIA H200)" */
const char *phema_devices_format(const struct phema_devices *devices);
/* Bytes that may be taken of each. */
uint64_t phema_devices_limit(const struct phema_devices *devices);

/* Takes the memory of all lanes. PHEMA_NO when a device or the host has not enough: nothing is
 * taken then, and the message is the device's; a smaller layout may be tried. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_devices_start(struct phema_devices *devices,
                                   const struct phema_cuda_layout *layout, struct phema_error *err);
void phema_devices_stop(struct phema_devices *devices);

/* Of all devices: what lanes have, and what is gone since they were opened, CUDA's own included. */
struct phema_device_usage {
    uint64_t allocated_bytes, reserved_bytes;
};
struct phema_device_usage phema_devices_usage(const struct phema_devices *devices);

/* ---- Lanes: see cuda.h ---- */

struct phema_lane {
    const struct phema_devices *devices;
    unsigned device;
    uint64_t index;
};

/* Of thread i: devices in turn. */
struct phema_lane phema_devices_lane(const struct phema_devices *devices, unsigned i);
uint8_t *phema_lane_slots(const struct phema_lane *lane);
const struct phema_cuda_counts *phema_lane_counts(const struct phema_lane *lane);
PHEMA_FALLIBLE phema_lane_feed(const struct phema_lane *lane, uint64_t slot, const uint8_t *from,
                               uint64_t bytes, uint64_t input, struct phema_error *err);
PHEMA_FALLIBLE phema_lane_average(const struct phema_lane *lane, const struct phema_cuda_job *job,
                                  struct phema_error *err);
PHEMA_FALLIBLE phema_lane_fetch(const struct phema_lane *lane, uint64_t row, uint64_t bytes,
                                uint64_t slot, struct phema_error *err);
PHEMA_FALLIBLE phema_lane_wait(const struct phema_lane *lane, uint64_t slot,
                               struct phema_error *err);

/* ---- The solver ---- */

/* Cholesky by cuSOLVER on the first device; loaded when it is used. */
const struct phema_factorer *phema_device_factorer(void);

#endif
