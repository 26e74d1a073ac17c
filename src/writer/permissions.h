/* permissions.h - private to writer/: permissions of published files. Partial files have fewer
 * (partial.h). Failures are ignored: the file stays less accessible. */
#ifndef WRITER_PERMISSIONS_H
#define WRITER_PERMISSIONS_H

#include <dirent.h>
#include <sys/stat.h>

/* The write permissions of group and others that a new file at path would have. */
mode_t permissions_usual_write(const char *path);

/* Adds these permissions to a published file, or to a directory and its files, for those who may
 * read it. */
void permissions_open_file(int descriptor, mode_t usual_write);
void permissions_open_directory(int descriptor, mode_t usual_write);

/* Removes them again from a directory and its files, before an old output is deleted. */
void permissions_close_directory(DIR *stream);

#endif
