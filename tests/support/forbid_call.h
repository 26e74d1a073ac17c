/* forbid_call.h - forbids one system call in this process and those that it starts, as containers
 * and old kernels do. */
#ifndef TESTS_SUPPORT_FORBID_CALL_H
#define TESTS_SUPPORT_FORBID_CALL_H

#include <stdbool.h>

/* The call of this number (SYS_...) fails with the errno from now on. false: the kernel cannot
 * forbid it. */
bool forbid_call(unsigned number, int error);

#endif
