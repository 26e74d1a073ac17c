/* directory.h - private to writer/: directories that are written, and entries of any directory. */
#ifndef WRITER_DIRECTORY_H
#define WRITER_DIRECTORY_H

#include <dirent.h>
#include <sys/stat.h>

#include "phema/writer.h"

/* A complete PATH.partial as a directory to commit. Owns the descriptor, which is open and locked,
 * from here on. PATH.partial stays, whatever fails. */
PHEMA_FALLIBLE directory_adopt(struct phema_writer_directory **out, const char *path,
                               int descriptor, const struct phema_writer_options *options,
                               struct phema_error *err);

/* Removes the directory old_path, which path has replaced, where it holds plain files alone. */
PHEMA_FALLIBLE directory_remove_replaced(const char *path, const char *old_path,
                                         struct phema_error *err);

/* Where directories cannot be exchanged: moves path to aside_path and partial_path to path. 0; or
 * -1 and errno, and nothing has moved. */
int directory_move_aside(const char *path, const char *partial_path, const char *aside_path);

/* ---- directory_entries.c ---- */

/* A stream over the directory's entries, from the first on; NULL and errno. The descriptor stays
 * open. */
DIR *directory_list(int descriptor);

/* The next entry besides "." and "..", borrowed until the next call. NULL at the end, with errno 0,
 * and where the directory cannot be read. */
const char *directory_next_name(DIR *stream);

/* true for a regular file; links are not followed. */
bool directory_has_file(struct stat *st, int descriptor, const char *name);

/* *is_empty: the open directory holds nothing. PHEMA_ERR_OUTPUT when it holds anything but plain
 * files or, of a leftover, files that are not the effective user's. */
PHEMA_FALLIBLE directory_check_entries(bool *is_empty, int descriptor, bool is_leftover,
                                       const char *path, struct phema_error *err);
PHEMA_FALLIBLE directory_check_listed(bool *is_empty, DIR *stream, bool is_leftover,
                                      const char *path, struct phema_error *err);

/* Removes plain files, as far as they can be removed; other entries stay. */
void directory_remove_listed(DIR *stream);
/* The same, except for files whose names are wanted. */
void directory_remove_unwanted(int descriptor,
                               bool (*is_wanted)(const void *context, const char *name),
                               const void *context);

#endif
