/* cli.h - the command line: verbs, options, help, messages, exit status. */
#ifndef PHEMA_CLI_H
#define PHEMA_CLI_H

/* Runs the verb that argv names; the result is the program's exit status (error.h). */
int phema_cli_main(int argc, char **argv);

#endif
