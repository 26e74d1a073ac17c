// SPDX-License-Identifier: Apache-2.0
/* write_error.c - errno to status and message. */
#include "write_error.h"

#include <errno.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/strbuf.h"

enum phema_status(writer_fail_errno)(struct phema_error *err, const char *path, const char *what,
                                     int number)
{
    enum phema_status status = phema_fail_errno(err, PHEMA_ERR_OUTPUT, what, number);
    return phema_fail_in(err, status, "%s", path);
}

enum phema_status(writer_fail_memory)(struct phema_error *err, const char *path)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
}

enum phema_status(writer_fail_size)(struct phema_error *err, const char *path, uint64_t size_bytes,
                                    int number)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s: %s are needed", path, strerror(number),
                      phema_size_format(&shown, size_bytes));
}

enum phema_status(writer_fail_locked)(struct phema_error *err, const char *path)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: another run is writing it; wait for it or choose another name", path);
}

enum phema_status(writer_fail_publish)(struct phema_error *err, const char *path, int number)
{
    if (number == EEXIST)
        return phema_fail(
            err, PHEMA_ERR_OUTPUT,
            "%s: appeared while this run was writing; it was left as it is (%s replaces it)", path,
            phema_setting_name(PHEMA_SET_FORCE));
    return writer_fail_errno(err, path, "cannot be renamed into place", number);
}
