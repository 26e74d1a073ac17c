// SPDX-License-Identifier: Apache-2.0
/* without_uring EPERM|ENOSYS COMMAND [ARGUMENT...]: runs the command, for which io_uring_setup
 * fails with that error. Status 77: the kernel cannot forbid it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forbid_call.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (!forbid_call(SYS_io_uring_setup, strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM)) {
        perror("without_uring");
        return 77;
    }
    (void)execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
