/* gpu.h - GPUs that sum tiles: parsing of --device, the CUDA plug-in (cuda_plugin.h, loaded only
 * when a device is wanted), device memory of a run, and lanes, through which threads feed devices.
 * Results have the same bits as those of accumulate.h, except with cuBLAS. Messages name the
 * device. Safe from any thread; one thread at a time may use a lane. */
#ifndef PHEMA_GPU_H
#define PHEMA_GPU_H

#include "phema/cuda_plugin.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/solver.h"

/* ---- device_list.c: --device ---- */

enum phema_device_kind { PHEMA_DEVICE_CPU, PHEMA_DEVICE_AUTO, PHEMA_DEVICE_CUDA };

#define PHEMA_MAX_DEVICES 16
/* Default share of a device's free memory; the rest is left to other processes. */
#define PHEMA_DEVICE_FRACTION 0.9

struct phema_device_request {
    enum phema_device_kind kind;
    bool takes_all;
    int32_t indices[PHEMA_MAX_DEVICES]; /* CUDA device numbers, each once */
    size_t n;                           /* number of indices; ignored with takes_all */
    uint64_t memory_bytes;              /* per device; 0: memory_fraction of the free memory */
    double memory_fraction;             /* 0: PHEMA_DEVICE_FRACTION */
    bool uses_blas;                     /* cuBLAS for more than PHEMA_CUDA_GROUP targets */
};

/* "auto", "cpu", "cuda", "cuda:1", "cuda:0,1", "cuda:all"; NULL: auto. The memory members of
 * request keep their values. PHEMA_ERR_USAGE */
PHEMA_FALLIBLE phema_device_list_parse(struct phema_device_request *request, const char *text,
                                       struct phema_error *err);

/* ---- memory_fit.c: device memory, computed without a device ---- */

/* Larger tiles do not make copies to the device faster. */
#define PHEMA_DEVICE_TILE_BYTES ((uint64_t)1 << 20)
#define PHEMA_DEVICE_TILE_ELEMS ((uint64_t)1 << 20)
/* In copies of smaller tiles, latency dominates. */
#define PHEMA_DEVICE_LEAST_TILE_ELEMS ((uint64_t)4 << 10)

struct phema_device_demand {
    uint64_t n_in[PHEMA_N_DTYPES];      /* elements that the device sums, by input dtype */
    uint64_t n_out[PHEMA_N_DTYPES];     /* the same elements, by output dtype */
    uint64_t n_through[PHEMA_N_DTYPES]; /* all elements that pass through slots, read or written */
    uint64_t slot_room;                 /* extra bytes per slot, for reads of whole pages */
    uint64_t n_inputs, n_rows;          /* snapshots and targets of a tile, at most */
    uint64_t numbers_per_elem;          /* 2 with complex elements */
    uint64_t block_elems,
        n_more_blocks; /* a tile has a block per block_elems, plus n_more_blocks */
    uint64_t n_slots;
    uint64_t max_tile_elems;
    unsigned n_threads; /* that feed all devices */
    unsigned n_devices;
    bool is_f64; /* some sums are in float64 */
    bool uses_blas;
};

struct phema_device_fit {
    struct phema_cuda_layout layout; /* of each device */
    uint64_t tile_elems;
    uint64_t n_tile_passes; /* over the inputs of a tile, on the device, for all targets */
    uint64_t device_bytes;  /* per device */
    uint64_t host_bytes;    /* host memory that devices access, of all threads */
    unsigned n_threads;
};

/* The largest tiles that fit the limit. When memory is tight the fit first reduces the rows of
 * targets to one group, then uses smaller tiles, then fewer threads.
 * PHEMA_ERR_RESOURCE  the smallest tile of one thread does not fit; the message names the bytes
 *                     needed */
PHEMA_FALLIBLE phema_device_fit(struct phema_device_fit *out,
                                const struct phema_device_demand *demand, uint64_t limit_bytes,
                                struct phema_error *err);

/* True for F16, BF16, F32, F64, and for C64, which is summed as two F32. */
bool phema_device_takes(enum phema_dtype dtype);
enum phema_cuda_dtype phema_device_dtype(enum phema_dtype dtype);

/* ---- choose_device.c: GPU or CPU ---- */

/* Measured bytes of inputs per second. */
struct phema_device_rates {
    double processor; /* summed by all CPU threads, for all targets */
    double reading;   /* only read by them */
    double device;    /* copied to one device and summed there */
    unsigned n_devices;
};
/* True when devices are clearly faster; why receives the two rates as text, in both cases. */
bool phema_device_wins(char *why, size_t why_size, const struct phema_device_rates *rates);

/* ---- devices.c: the devices of a run ---- */

struct phema_devices;

/* Loads the plug-in and finds the devices; allocates no device memory beyond CUDA's own.
 * PHEMA_ERR_RESOURCE  no plug-in, no driver, no such device, or a device that is too old; the
 *                     message is one sentence */
PHEMA_FALLIBLE phema_devices_open(struct phema_devices **out,
                                  const struct phema_device_request *request,
                                  struct phema_error *err);
void phema_devices_close(struct phema_devices *devices); /* takes NULL */

/* True when a driver seems to be installed; cheap, loads nothing. */
bool phema_device_may_exist(void);

unsigned phema_devices_n(const struct phema_devices *devices);
/* "cuda:0 (NVIDIA H200)", "cuda:0,1 (2 x NVIDIA H200)" */
const char *phema_devices_format(const struct phema_devices *devices);
/* Bytes that may be allocated on each device. */
uint64_t phema_devices_limit(const struct phema_devices *devices);

/* Allocates the memory of all lanes.
 * PHEMA_NO            a device or the host has too little memory: nothing stays allocated, the
 *                     message is the device's, and the caller may try a smaller layout
 * PHEMA_ERR_RESOURCE  the device failed */
PHEMA_FALLIBLE phema_devices_start(struct phema_devices *devices,
                                   const struct phema_cuda_layout *layout, struct phema_error *err);
void phema_devices_stop(struct phema_devices *devices);

/* Of all devices together. */
struct phema_device_usage {
    uint64_t allocated_bytes; /* by lanes */
    uint64_t reserved_bytes;  /* less free memory than at opening, CUDA's own use included */
};
struct phema_device_usage phema_devices_usage(const struct phema_devices *devices);

/* ---- devices.c: lanes, see cuda_plugin.h ---- */

struct phema_lane {
    const struct phema_devices *devices;
    unsigned device;
    uint64_t index;
};

/* The lane of thread i; threads are assigned to devices in turn. */
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

/* ---- cusolver_factor.c ---- */

/* Cholesky by cuSOLVER on the first device; the plug-in is loaded at the first use. */
const struct phema_factorer *phema_device_factorer(void);

#endif
