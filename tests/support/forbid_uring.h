/* forbid_uring.h - forbids io_uring in this process and those that it starts. */
#ifndef TEST_FORBID_URING_H
#define TEST_FORBID_URING_H

#include <stdbool.h>

/* io_uring_setup fails with this errno from now on. false: the kernel cannot forbid it. */
bool forbid_uring(int error);

#endif
