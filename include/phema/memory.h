/* memory.h - how much memory this process has and may have, as the kernel and libc count it. */
#ifndef PHEMA_MEMORY_H
#define PHEMA_MEMORY_H

#include "phema/error.h"
#include "phema/span.h"

/* Where the heap begins differs from run to run, by pages: what one run is said to need is a little
 * more than it does, so that it is enough for the next. */
#define PHEMA_MEMORY_VARIES ((uint64_t)32 << 10)

struct phema_memory {
    uint64_t anonymous_bytes; /* resident, backed by no file */
    uint64_t file_bytes;      /* resident pages of mapped files: the kernel's to take back */
    uint64_t allocated_bytes; /* given out by malloc at this moment, resident or not */
};

/* zeros where kernel or libc do not tell */
struct phema_memory phema_memory_now(void);

/* Only allocated_bytes, and cheap: a microsecond. */
uint64_t phema_memory_allocated(void);

/* The largest resident size so far, mapped pages included. */
uint64_t phema_memory_peak_resident(void);

/* PHEMA_ERR_RESOURCE when anonymous memory and what else is needed exceed --max-ram; needed_for
 * completes "... are needed ". limit: 0 for none. */
PHEMA_FALLIBLE phema_memory_check(uint64_t limit, uint64_t else_bytes, const char *needed_for,
                                  struct phema_error *err);

/* What control groups allow this process and those it shares them with; 0: no limit. */
uint64_t phema_memory_limit(void);

/* Whether the process may map so much more memory at this moment: limits such as `ulimit -v` and
 * strict overcommit are kept. To be asked before a library is used that hangs or ends the process
 * where memory ends. */
bool phema_memory_has_room(uint64_t bytes);

/* Makes malloc give large blocks back to the kernel as soon as they are freed, whatever was
 * allocated before; for the start of a program that promises how much it will hold. */
void phema_memory_return_freed(void);

/* Where the address space of the process is limited: makes malloc set nothing of it apart for each
 * thread. For the start of a program. */
void phema_memory_save_address_space(void);

/* How much of a file is in the page cache, mapped or not; false where that cannot be told. */
bool phema_page_cache_bytes(uint64_t *bytes, const char *path);

#endif
