// SPDX-License-Identifier: Apache-2.0
/* memory.c - memory of devices. Its addresses are reserved but not accessible, so that host code
 * that dereferences one faults; the bytes lie elsewhere. For each byte, shadows hold who wrote it
 * (0 nobody, 1 a copy, or the number of a launch), and the last launch that read it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "module.h"
#include "ptx.h"

#define WRITTEN_BY_COPY 1u
/* Around each allocation, so that none begins where another one ends. Not a multiple of a page:
 * cudaMalloc promises addresses that are multiples of 256, and no more. */
#define GAP ((uint64_t)65536 + 256)

struct ptx_allocation {
    struct ptx_allocation *next;
    uint64_t start, bytes;
    uint8_t *data;
    uint32_t *writers, *readers;
    int device;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ptx_allocation *allocations;

void ptx_memory_hold(void)
{
    (void)pthread_rwlock_rdlock(&lock);
}

void ptx_memory_release(void)
{
    (void)pthread_rwlock_unlock(&lock);
}

static void *reserve(uint64_t bytes, int protection)
{
    void *memory =
        mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(struct ptx_allocation *allocation)
{
    uint64_t bytes = allocation->bytes;
    if (allocation->start)
        (void)munmap((uint8_t *)allocation->start - GAP, bytes + 2 * GAP);
    if (allocation->data)
        (void)munmap(allocation->data, bytes);
    if (allocation->writers)
        (void)munmap(allocation->writers, bytes * sizeof(uint32_t));
    if (allocation->readers)
        (void)munmap(allocation->readers, bytes * sizeof(uint32_t));
    free(allocation);
}

enum phema_status ptx_alloc(uint8_t **out, int device, uint64_t bytes, struct phema_error *err)
{
    struct ptx_allocation *allocation = calloc(1, sizeof(*allocation));
    if (!allocation || bytes > UINT64_MAX / 8) {
        free(allocation);
        return phema_fail_memory(err);
    }
    uint8_t *gap = reserve(bytes + 2 * GAP, PROT_NONE);
    *allocation = (struct ptx_allocation){
        .bytes = bytes,
        .start = gap ? (uint64_t)gap + GAP : 0,
        .device = device,
        .data = reserve(bytes, PROT_READ | PROT_WRITE),
        .writers = reserve(bytes * sizeof(uint32_t), PROT_READ | PROT_WRITE),
        .readers = reserve(bytes * sizeof(uint32_t), PROT_READ | PROT_WRITE)};
    if (!gap || !allocation->data || !allocation->writers || !allocation->readers) {
        unmap(allocation);
        return phema_fail_memory(err);
    }
    (void)pthread_rwlock_wrlock(&lock);
    allocation->next = allocations;
    allocations = allocation;
    ptx_memory_release();
    *out = gap + GAP;
    return PHEMA_OK;
}

enum phema_status ptx_free(uint8_t *start, struct phema_error *err)
{
    (void)pthread_rwlock_wrlock(&lock);
    struct ptx_allocation **at = &allocations;
    while (*at && (*at)->start != (uint64_t)start)
        at = &(*at)->next;
    struct ptx_allocation *found = *at;
    if (found)
        *at = found->next;
    ptx_memory_release();
    if (!found)
        return phema_fail(err, PHEMA_BUG, "%p was not allocated", (void *)start);
    unmap(found);
    return PHEMA_OK;
}

/* The allocation that contains [address, address + bytes); the caller holds the lock. */
static const struct ptx_allocation *find(uint64_t address, uint64_t bytes)
{
    const struct ptx_allocation *at = allocations;
    while (at && (address < at->start || address - at->start > at->bytes ||
                  bytes > at->bytes - (address - at->start)))
        at = at->next;
    return at;
}

enum phema_status ptx_view(uint8_t **out, int device, const void *address, uint64_t bytes,
                           bool reads, struct phema_error *err)
{
    ptx_memory_hold();
    const struct ptx_allocation *found = find((uint64_t)address, bytes);
    enum phema_status status = PHEMA_OK;
    if (!found)
        status = phema_fail(err, PHEMA_BUG, "%llu bytes at %p lie outside of what was allocated",
                            (unsigned long long)bytes, address);
    else if (found->device != device)
        status = phema_fail(err, PHEMA_BUG, "%p belongs to device %d, and device %d uses it",
                            address, found->device, device);
    for (uint64_t i = 0; !status && reads && i < bytes; i++)
        if (!found->writers[(uint64_t)address - found->start + i])
            status = phema_fail(err, PHEMA_BUG, "byte %llu of %llu at %p was never written",
                                (unsigned long long)i, (unsigned long long)bytes, address);
    if (!status)
        *out = found->data + ((uint64_t)address - found->start);
    ptx_memory_release();
    return status;
}

void ptx_mark_written(const void *address, uint64_t bytes)
{
    ptx_memory_hold();
    const struct ptx_allocation *found = find((uint64_t)address, bytes);
    for (uint64_t i = 0; found && i < bytes; i++)
        found->writers[(uint64_t)address - found->start + i] = WRITTEN_BY_COPY;
    ptx_memory_release();
}

uint64_t ptx_allocated_bytes(int device)
{
    uint64_t bytes = 0;
    ptx_memory_hold();
    for (const struct ptx_allocation *at = allocations; at; at = at->next)
        bytes += at->device == device ? at->bytes : 0;
    ptx_memory_release();
    return bytes;
}

uint8_t *ptx_access(const struct ptx_access *access, const struct ptx_allocation **last,
                    struct phema_error *err)
{
    const struct ptx_allocation *found = *last;
    uint64_t address = access->address;
    if (!found || address < found->start || address + access->bytes > found->start + found->bytes)
        *last = found = find(address, access->bytes);
    const char *what = access->writes ? "writes" : "reads";
    if (!found || found->device != access->device) {
        (void)phema_fail(err, PHEMA_BUG, "%s %u bytes at %#llx, outside of the device's memory",
                         what, access->bytes, (unsigned long long)address);
        return NULL;
    }
    if (address % access->bytes) {
        (void)phema_fail(err, PHEMA_BUG, "%s %u bytes at %#llx, which is misaligned", what,
                         access->bytes, (unsigned long long)address);
        return NULL;
    }
    uint64_t offset = address - found->start;
    uint32_t launch = access->launch, *writers = found->writers + offset;
    uint32_t *readers = found->readers + offset;
    for (uint32_t i = 0; i < access->bytes; i++) {
        const char *problem = writers[i] == launch ? "what the same launch wrote"
                              : access->writes && readers[i] == launch ? "what the same launch read"
                              : !writers[i] && !access->writes         ? "what nobody wrote"
                                                                       : NULL;
        if (problem) {
            (void)phema_fail(err, PHEMA_BUG, "%s, at %#llx, %s", what, (unsigned long long)address,
                             problem);
            return NULL;
        }
        (access->writes ? writers : readers)[i] = launch;
    }
    return found->data + offset;
}
