// SPDX-License-Identifier: Apache-2.0
/* without_threads COMMAND [ARGUMENT...]: runs the command and forbids it to start threads. Status
 * 77: the kernel cannot forbid them. */
#include <stdio.h>
#include <unistd.h>

#include "forbid_threads.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (!forbid_threads()) {
        perror("without_threads");
        return 77;
    }
    (void)execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
