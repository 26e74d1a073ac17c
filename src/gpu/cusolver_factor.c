// SPDX-License-Identifier: Apache-2.0
/* cusolver_factor.c - Cholesky on the first GPU for the solver. The plug-in stays loaded; nothing
 * stays allocated on the device. */
#include "loader.h"
#include "phema/gpu.h"
#include "phema/strbuf.h"

#include <string.h>

static enum phema_status factor(double *matrix, size_t n, struct phema_error *err)
{
    const struct phema_cuda_plugin *plugin = NULL;
    enum phema_status status = plugin_load(&plugin, err);
    if (status)
        return phema_fail_in(err, status, "--solver cusolver");
    int32_t n_found = 0;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = plugin->count(&n_found, &message);
    if (!result)
        result = plugin->factor(0, matrix, n, &message);
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, message.text, strnlen(message.text, sizeof(message.text)));
    if (result == PHEMA_CUDA_NO)
        return PHEMA_NO;
    return result ? phema_fail(err, PHEMA_ERR_RESOURCE, "--solver cusolver: %s", shown.text)
                  : PHEMA_OK;
}

const struct phema_factorer *phema_device_factorer(void)
{
    static const struct phema_factorer factorer = {"cusolver", factor};
    return &factorer;
}
