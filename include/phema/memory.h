/* memory.h - how much memory this process has and may have, as the kernel and libc count it. */
#ifndef PHEMA_MEMORY_H
#define PHEMA_MEMORY_H

#include "phema/error.h"
#include "phema/span.h"

/* The start of the heap differs from run to run, by pages. Reported needs are this much larger, so
 * that they suffice for the next run. */
#define PHEMA_MEMORY_VARIES ((uint64_t)32 << 10)

struct phema_memory {
    uint64_t anonymous_bytes; /* resident, backed by no file */
    uint64_t file_bytes;      /* resident pages of mapped files, which the kernel may reclaim */
    uint64_t allocated_bytes; /* allocated by malloc now, resident or not */
};

/* zeros where the kernel or libc do not tell */
struct phema_memory phema_memory_now(void);

/* Only allocated_bytes, and cheap: a microsecond. */
uint64_t phema_memory_allocated(void);

/* The largest resident size so far, mapped pages included. */
uint64_t phema_memory_peak_resident(void);

/* PHEMA_ERR_RESOURCE when anonymous memory and else_bytes exceed limit, the value of --max-ram; 0:
 * no limit. needed_for completes "... are needed ". */
PHEMA_FALLIBLE phema_memory_check(uint64_t limit, uint64_t else_bytes, const char *needed_for,
                                  struct phema_error *err);

/* The limit of the control groups on this process and those in its groups [bytes]; 0: no limit. */
uint64_t phema_memory_limit(void);

/* true when the process can map this many more bytes now, under limits such as `ulimit -v` and
 * strict overcommit. Check it before using a library that hangs or ends the process without
 * memory. */
bool phema_memory_has_room(uint64_t bytes);

/* Asks for huge pages for a large block of malloc. Call it before the block is written, if all of it
 * will be. Each small page costs a microsecond at first, and more where several threads touch them. */
void phema_memory_will_fill(void *block, uint64_t bytes);

/* Makes malloc return large blocks to the kernel as soon as they are freed, whatever was allocated
 * before. For the start of a program that bounds its memory. */
void phema_memory_return_freed(void);

/* Where the address space of the process is limited: keeps malloc from reserving some of it for
 * each thread. For the start of a program. */
void phema_memory_save_address_space(void);

/* Bytes of a file in the page cache, mapped or not; false where they are unknown. */
bool phema_page_cache_bytes(uint64_t *bytes, const char *path);

/* Pages of bytes [offset, offset + size) of an open file that are in the page cache; size 0: up to
 * its end. Takes time for each of them. false: the kernel does not tell. */
bool phema_page_cache_pages(uint64_t *n, int descriptor, uint64_t offset, uint64_t size);

#endif
