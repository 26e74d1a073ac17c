/* memory.h - how much memory this process has right now, as the kernel counts it. */
#ifndef PHEMA_MEMORY_H
#define PHEMA_MEMORY_H

#include "phema/span.h"

struct phema_memory {
    uint64_t anonymous_bytes; /* resident, backed by no file */
    uint64_t file_bytes;      /* resident pages of mapped files: the kernel's to take back */
};

/* zeros where the kernel does not tell */
struct phema_memory phema_memory_now(void);

#endif
