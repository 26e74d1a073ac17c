/* cli.h - the command line: verbs, options, help, messages, exit status. */
#ifndef PHEMA_CLI_H
#define PHEMA_CLI_H

#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

/* The processes that an MPI launcher has started with the same command line. The functions are
 * called by the thread that runs the command line. All processes call agree, broadcast and gather in the same
 * order. */
struct phema_team {
    unsigned rank, size; /* rank < size */
    void *context;
    /* Each number from 0 on, in one process each; after stop large ones. */
    uint64_t (*next_run)(void *context);
    void (*stop)(void *context);
    /* Called ten times a second while a process works. */
    void (*make_progress)(void *context);
    /* Returns, in all processes, status and message of the lowest rank that failed; PHEMA_OK where
     * all succeeded. A failure of some processes only names the process and its host. */
    enum phema_status (*agree)(void *context, enum phema_status status, struct phema_error *err);
    /* data: [size] of rank 0, and then of all */
    void (*broadcast)(void *context, void *data, size_t size);
    /* all: out, [size] the values of all processes, in all of them */
    void (*gather)(void *context, uint64_t *all, uint64_t value);
};

/* Runs the verb that argv names; the result is the program's exit status (error.h). */
int phema_cli_main(int argc, char **argv);

/* The same for a process of a team: synth shares its work, other verbs are those of rank 0, and all
 * processes return the same status. */
int phema_cli_main_in_team(int argc, char **argv, const struct phema_team *team);

#endif
