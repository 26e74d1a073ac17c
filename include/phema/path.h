/* path.h - parts of paths. Strings that are not const are the caller's; NULL without memory. */
#ifndef PHEMA_PATH_H
#define PHEMA_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* The provenance of an output that is a directory of zips, and in it. Files of other formats
 * without metadata have it in PATH.json. */
#define PHEMA_PROVENANCE_FILE "posthoc_ema.json"

/* The path without slashes at its end; "/" stays. */
char *phema_path_trim(const char *path);
size_t phema_path_trimmed_size(const char *path); /* its length */

/* The directory that holds the path's last name, whatever slashes follow; "." for a bare name. */
char *phema_path_directory(const char *path);

/* Whether a path begins as a URL does: "s3://..." */
bool phema_path_is_url(const char *path);

/* Why a path cannot be read: strerror(number); of a URL how to download it, if number is ENOENT. */
const char *phema_path_reason(const char *path, int number);

/* Of what a link leads to. */
bool phema_path_exists(const char *path);
bool phema_path_is_directory(const char *path);

/* The last name of a path without slashes at its end; borrowed from the path. */
const char *phema_path_last_name(const char *path);

#endif
