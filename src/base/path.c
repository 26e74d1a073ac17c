// SPDX-License-Identifier: Apache-2.0
/* path.c - parts of paths. */
#include "phema/path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/span.h"

size_t phema_path_trimmed_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return size;
}

char *phema_path_trim(const char *path)
{
    return strndup(path, phema_path_trimmed_size(path));
}

char *phema_path_directory(const char *path)
{
    const char *slash = memrchr(path, '/', phema_path_trimmed_size(path));
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

bool phema_path_is_url(const char *path)
{
    size_t size = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return size > 0 && strncmp(path + size, "://", 3) == 0;
}

/* "user@host:path", as scp has it */
static bool is_on_host(const char *path)
{
    size_t size =
        strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@");
    return size > 1 && path[size] == ':' && !phema_path_is_url(path);
}

const char *phema_path_reason(const char *path, int number)
{
    static const char *const reasons[][2] = {
        {"file://", "URLs are not read; give the path without file://"},
        {"hf://", "URLs are not read; download it first, for example with 'hf download'"},
        {"https://huggingface.co/",
         "URLs are not read; download it first, for example with 'hf download'"},
        {"http", "URLs are not read; download it first, for example with 'curl -LO'"},
        {"s3://", "URLs are not read; download it first, for example with 'aws s3 cp', or 'aws s3 "
                  "sync' for a directory"},
        {"gs://",
         "URLs are not read; download it first, for example with 'gcloud storage cp', with "
         "-r for a directory"}};
    if (number != ENOENT)
        return strerror(number);
    if (strncmp(path, "~/", 2) == 0)
        return "No such file or directory; a shell expands ~ outside of quotes only";
    if (is_on_host(path))
        return "No such file or directory; copy files of another machine here, or mount them";
    if (!phema_path_is_url(path))
        return strerror(number);
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strncmp(path, reasons[i][0], strlen(reasons[i][0])) == 0)
            return reasons[i][1];
    return "URLs are not read; download it first";
}

const char *phema_path_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool phema_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool phema_path_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
