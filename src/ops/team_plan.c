// SPDX-License-Identifier: Apache-2.0
/* team_plan.c - sends the plan of rank 0 to the other processes, which look for no snapshots, read
 * no headers and solve nothing. */
#include "team_plan.h"

#include <stdlib.h>

#include "phema/packed.h"

const struct phema_team *phema_team_of(const struct phema_team *team)
{
    return team && team->size > 1 ? team : NULL;
}

enum phema_status phema_team_share_status(const struct phema_team *team, enum phema_status status,
                                          struct phema_error *err)
{
    struct {
        uint64_t status;
        struct phema_error err;
    } first = {status, *err};
    team->broadcast(team->context, &first, sizeof(first));
    if (first.status)
        *err = first.err;
    return (enum phema_status)first.status;
}

static enum phema_status pack(struct phema_prepared *prepared, struct phema_packer *packer,
                              struct phema_error *err)
{
    enum phema_status status = phema_plan_pack(&prepared->plan, packer, err);
    return status ? status : phema_outputs_pack(&prepared->outputs, packer, prepared->plan, err);
}

/* data: the packed plan in rank 0; memory for it in the others */
static enum phema_status transfer(struct phema_prepared *prepared, const struct phema_team *team,
                                  uint8_t *data, size_t size, struct phema_error *err)
{
    enum phema_status status = data ? PHEMA_OK : phema_fail_memory(err);
    status = team->agree(team->context, status, err);
    if (status)
        return status;
    team->broadcast(team->context, data, size);
    if (team->rank > 0)
        status = pack(prepared, &(struct phema_packer){.rest = {data, size}}, err);
    return team->agree(team->context, status, err);
}

PHEMA_FALLIBLE team_share_plan(struct phema_prepared *prepared, const struct phema_team *team,
                               enum phema_status status, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (team->rank == 0 && !status)
        status = pack(prepared, &(struct phema_packer){.out = &text}, err);
    status = phema_team_share_status(team, status, err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    uint64_t size_bytes = text.size;
    team->broadcast(team->context, &size_bytes, sizeof(size_bytes));
    size_t size = (size_t)size_bytes;
    uint8_t *data = team->rank == 0 ? (uint8_t *)text.data : malloc(size);
    status = transfer(prepared, team, data, size, err);
    if (team->rank > 0)
        free(data);
    phema_strbuf_clear(&text);
    return status;
}
