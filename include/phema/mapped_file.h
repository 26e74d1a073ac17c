/* mapped_file.h - a regular file, mapped for reading.
 * Opened without blocking (a FIFO is refused), size and time of change remembered. A file that
 * shrinks while mapped ends the program with a sentence naming it, after partial outputs are gone
 * (cleanup.h). Safe from any thread once open. */
#ifndef PHEMA_MAPPED_FILE_H
#define PHEMA_MAPPED_FILE_H

#include "phema/error.h"
#include "phema/span.h"

struct phema_file;

/* Messages do not name the path: the caller adds it, since it knows how the user wrote it.
 * PHEMA_ERR_FILE      missing, not a regular file, empty, unreadable, not mappable
 * PHEMA_ERR_RESOURCE  no memory or descriptors */
PHEMA_FALLIBLE phema_file_open(struct phema_file **out, const char *path, struct phema_error *err);

struct phema_span phema_file_span(const struct phema_file *file);
const char *phema_file_path(const struct phema_file *file);

/* PHEMA_ERR_FILE when size or modification time differ from those at open. Names the path. */
PHEMA_FALLIBLE phema_file_check_unchanged(const struct phema_file *file, struct phema_error *err);

/* PHEMA_ERR_FILE when what the descriptor has open is another file by now, or has changed. Does not
 * name the path. */
PHEMA_FALLIBLE phema_file_check_same(const struct phema_file *file, int descriptor,
                                     struct phema_error *err);

/* The kernel begins to read the pages of [offset, offset + size), and this does not wait for it. */
void phema_file_prefetch(const struct phema_file *file, uint64_t offset, uint64_t size);

/* Lets go of the resident pages wholly inside [offset, offset + size): the next access reads them
 * again. For keeping the resident size bounded behind a reader. */
void phema_file_evict(const struct phema_file *file, uint64_t offset, uint64_t size);

void phema_file_close(struct phema_file *file); /* takes NULL */

#endif
