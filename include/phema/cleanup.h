/* cleanup.h - partial outputs and commands to remove when a signal ends the program.
 * Signal handlers walk a process-wide list. SIGINT, SIGTERM, SIGHUP, SIGPIPE and other signals that
 * end a program remove its entries and then end the program by that signal. SIGBUS in a mapped file
 * removes them too, names the file that was cut, and exits with PHEMA_ERR_FILE. All functions are
 * safe from any thread. */
#ifndef PHEMA_CLEANUP_H
#define PHEMA_CLEANUP_H

#include <sys/types.h>

#include "phema/error.h"
#include "phema/span.h"

struct phema_cleanup_entry; /* on the list */

void phema_cleanup_install_handlers(void);

/* Reads a byte of every page. A system call fails with EFAULT on a page of a mapped file that was
 * cut. Reading that page raises the SIGBUS whose handler names the file. */
void phema_cleanup_touch(const void *data, size_t size);

/* Between hold and resume ending signals wait, whichever thread they are delivered to. Hold them
 * from the creation of a file until it is on the list, so that no file is left. hold may nest. */
void phema_cleanup_hold(void);
void phema_cleanup_resume(void);

/* Adds a path to remove. path is copied. Directories are removed with rmdir, after all files.
 * PHEMA_ERR_RESOURCE when there is no memory. */
PHEMA_FALLIBLE phema_cleanup_add_partial(struct phema_cleanup_entry **out, const char *path,
                                         bool is_directory, struct phema_error *err);

/* Adds the memory of a mapped file; path is borrowed until the entry is removed. For an output the
 * message reports a full disk, and the exit status is PHEMA_ERR_OUTPUT. */
PHEMA_FALLIBLE phema_cleanup_add_map(struct phema_cleanup_entry **out, struct phema_span span,
                                     const char *path, bool is_output, struct phema_error *err);

/* Adds a process group, which gets SIGTERM. Remove the entry before its leader is waited for:
 * afterwards the kernel may give the number to another group. */
PHEMA_FALLIBLE phema_cleanup_add_group(struct phema_cleanup_entry **out, pid_t group,
                                       struct phema_error *err);

/* A line that goes to standard error when SIGINT, SIGTERM or SIGHUP ends the program; NULL: none. A
 * handler may read the text for a moment after it was replaced. */
void phema_cleanup_set_farewell(const char *text);

void phema_cleanup_remove(struct phema_cleanup_entry *entry); /* takes NULL; the file stays */

#endif
