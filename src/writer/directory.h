/* directory.h - private to writer/: directories that are written, and entries of any directory. */
#ifndef WRITER_DIRECTORY_H
#define WRITER_DIRECTORY_H

#include "pending.h"
#include "phema/writer.h"

/* A complete PATH.partial as a directory to commit. Owns the descriptor, which is open and locked,
 * from here on. PATH.partial stays, whatever fails. */
PHEMA_FALLIBLE directory_adopt(struct phema_writer_directory **out, const char *path,
                               int descriptor, const struct phema_writer_options *options,
                               struct phema_error *err);

/* Removes the directory old_path, which path has replaced, where it holds plain files alone. */
PHEMA_FALLIBLE directory_remove_replaced(const char *path, const char *old_path,
                                         struct phema_error *err);

/* Folders in folders that are written, and removed. */
#define MAX_FOLDER_DEPTH 8

/* ---- directory_entries.c ---- */

/* Traits of a directory that is checked or removed. */
enum {
    DIRECTORY_IS_LEFTOVER = 1, /* of an ended run */
    /* With a provenance it was made by this program, and its folders are treated as it is itself.
     * In any other directory a folder stops what is done. */
    DIRECTORY_MAY_HAVE_FOLDERS = 2
};

/* A stream over the entries of a folder in the directory, or "." for its own; NULL and errno. The
 * descriptor stays open. */
DIR *directory_list(int descriptor, const char *name);

/* The next entry besides "." and "..", borrowed until the next call. NULL at the end, with errno 0,
 * and where the directory cannot be read. */
const char *directory_next_name(DIR *stream);

/* true for a regular file; links are not followed. */
bool directory_has_file(struct stat *st, int descriptor, const char *name);

/* A folder, where it is no link; -1 and errno. */
int directory_open_folder(int descriptor, const char *name);

/* *is_empty: the open directory holds nothing. PHEMA_ERR_OUTPUT when it holds anything but plain
 * files or, of a leftover, files that are not the effective user's. */
PHEMA_FALLIBLE directory_check_entries(bool *is_empty, int descriptor, unsigned traits,
                                       const char *path, struct phema_error *err);
PHEMA_FALLIBLE directory_check_listed(bool *is_empty, DIR *stream, unsigned traits,
                                      const char *path, struct phema_error *err);

/* Removes plain files, as far as they can be removed, and the provenance last; other entries
 * stay. */
void directory_remove_listed(DIR *stream, unsigned traits);
/* The same, except for files whose names below the directory are wanted; NULL: none. */
typedef bool is_wanted_file(const void *context, const char *name);
void directory_remove_unwanted(int descriptor, unsigned traits, is_wanted_file *is_wanted,
                               const void *context);

#endif
