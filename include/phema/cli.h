/* cli.h - the command line: verbs, options, help, messages, exit status. */
#ifndef PHEMA_CLI_H
#define PHEMA_CLI_H

#include "phema/team.h"

/* Runs the verb that argv names; the result is the program's exit status (error.h). */
int phema_cli_main(int argc, char **argv);

/* The same for a process of a team: synth shares its work, other verbs are those of rank 0, and all
 * processes return the same status. */
int phema_cli_main_in_team(int argc, char **argv, const struct phema_team *team);

#endif
