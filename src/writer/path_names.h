/* path_names.h - private to writer/: parts of paths, and the path of a partial output. Strings that
 * are not const are the caller's; NULL without memory. */
#ifndef WRITER_PATH_NAMES_H
#define WRITER_PATH_NAMES_H

/* The path without slashes at its end; "/" stays. */
char *path_trim(const char *path);

/* The directory that holds the path's last name; "." for a bare name. */
char *path_directory(const char *path);

/* The last name of a path without slashes at its end; borrowed from the path. */
const char *path_last_name(const char *path);

/* "PATH.partial" */
char *path_partial(const char *path);

#endif
