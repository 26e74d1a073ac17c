/* ptx.h - an interpreter of PTX, the assembly that nvcc makes of kernels. It executes every thread
 * of a grid and finds what a device may do silently: accesses outside of what was allocated or
 * misaligned, reads of bytes that nobody wrote, races in shared memory, threads that reach
 * different barriers, launches beyond the limits of a device. Source: PTX ISA 9.0.
 *
 * Functions are safe from any thread. Messages name the kernel, the line of the PTX, the block and
 * the thread. */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stdint.h>

#include "phema/error.h"

/* ---- memory.c: memory of devices ---- */

/* Addresses that the host cannot access by itself. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE ptx_alloc(uint8_t **out, int device, uint64_t bytes, struct phema_error *err);
/* PHEMA_BUG  this is not the start of an allocation */
PHEMA_FALLIBLE ptx_free(uint8_t *start, struct phema_error *err);
/* The host's view of [address, address + bytes), which must lie in one allocation of the device.
 * PHEMA_BUG  it does not, or with reads: some byte was never written */
PHEMA_FALLIBLE ptx_view(uint8_t **out, int device, const void *address, uint64_t bytes, bool reads,
                        struct phema_error *err);
/* Marks bytes that a copy or a library wrote. */
void ptx_mark_written(const void *address, uint64_t bytes);
uint64_t ptx_allocated_bytes(int device);

/* One access of a thread. launch: its number, from 2 on. A launch neither reads nor overwrites what
 * it wrote, and does not write what it read, so the order of its blocks cannot matter. Returns NULL
 * and writes a message if the access is wrong. */
struct ptx_access {
    uint64_t address;
    uint32_t bytes, launch;
    int device;
    bool writes;
};
struct ptx_allocation;
uint8_t *ptx_access(const struct ptx_access *access, const struct ptx_allocation **last,
                    struct phema_error *err);

/* ---- parse.c ---- */

struct ptx_module;
PHEMA_FALLIBLE ptx_module_parse(struct ptx_module **out, const char *text, struct phema_error *err);
void ptx_module_free(struct ptx_module *module); /* takes NULL */
/* Copies the arguments of a kernel, as cudaLaunchKernel receives them; the caller frees *out.
 * PHEMA_BUG  no such kernel */
PHEMA_FALLIBLE ptx_pack_arguments(uint8_t **out, const struct ptx_module *module,
                                  const char *kernel, void *const *arguments,
                                  struct phema_error *err);

/* ---- execute.c ---- */

struct ptx_launch {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint8_t *arguments; /* of ptx_pack_arguments */
    int device;
};
/* Executes the grid, block by block. PHEMA_BUG */
PHEMA_FALLIBLE ptx_launch(const struct ptx_module *module, const struct ptx_launch *launch,
                          struct phema_error *err);
/* Instructions executed so far, counted for each thread. */
uint64_t ptx_executed(void);

#endif
