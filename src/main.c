// SPDX-License-Identifier: Apache-2.0
/* main.c - argv to exit status; all the rest is behind cli.h. */
#include "phema/cli.h"
#include "phema/memory.h"

int main(int argc, char **argv)
{
    phema_memory_return_freed();
    phema_memory_save_address_space();
    return phema_cli_main(argc, argv);
}
