/* cleanup.h - what must be gone when the program dies: partial outputs, commands that it runs.
 * A process-wide list that signal handlers walk: SIGINT, SIGTERM, SIGHUP, SIGPIPE and other signals
 * that end a program remove what is on it and then end the program by that signal; SIGBUS in a
 * mapped file does the same, says which file was cut, and exits with PHEMA_ERR_FILE. Everything
 * here is safe from any thread. */
#ifndef PHEMA_CLEANUP_H
#define PHEMA_CLEANUP_H

#include <sys/types.h>

#include "phema/error.h"
#include "phema/span.h"

struct phema_cleanup_entry; /* on one of the lists */

void phema_cleanup_install_handlers(void);

/* Reads a byte of every page. A system call that is handed a page of a file that was cut fails with
 * EFAULT; touching it raises the SIGBUS that says which file it was. */
void phema_cleanup_touch(const void *data, size_t size);

/* Between hold and resume an ending signal waits: around making something and putting it on the
 * list, so that nothing is left between the two. Whichever thread it is delivered to; hold may
 * nest. */
void phema_cleanup_hold(void);
void phema_cleanup_resume(void);

/* path is copied; is_directory entries are removed with rmdir after all files.
 * PHEMA_ERR_RESOURCE when there is no memory. */
PHEMA_FALLIBLE phema_cleanup_add_partial(struct phema_cleanup_entry **out, const char *path,
                                         bool is_directory, struct phema_error *err);

/* The memory of a mapped file; path is borrowed until the entry is removed. Of an output the
 * sentence says that its disk is full, and the exit status is PHEMA_ERR_OUTPUT. */
PHEMA_FALLIBLE phema_cleanup_add_map(struct phema_cleanup_entry **out, struct phema_span span,
                                     const char *path, struct phema_error *err);
PHEMA_FALLIBLE phema_cleanup_add_output_map(struct phema_cleanup_entry **out,
                                            struct phema_span span, const char *path,
                                            struct phema_error *err);

/* A process group, which gets SIGTERM. To be removed before its leader is waited for: afterwards
 * the number may be another's. */
PHEMA_FALLIBLE phema_cleanup_add_group(struct phema_cleanup_entry **out, pid_t group,
                                       struct phema_error *err);

void phema_cleanup_remove(struct phema_cleanup_entry *entry); /* takes NULL; removes no file */

#endif
