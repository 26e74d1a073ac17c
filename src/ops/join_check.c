// SPDX-License-Identifier: Apache-2.0
/* join_check.c - the lists of all outputs are dealt, sent, compared and put together again. All
 * processes of a team make the same calls of it, whatever fails. */
#include "join_check.h"

#include <stdlib.h>

#include "phema/packed.h"
#include "team_runs.h"

struct checks {
    struct phema_writer_check *items; /* [n] */
    size_t n;
    size_t n_blocks, n_dealt; /* of all; those that are compared */
    uint64_t *differs;        /* [n_blocks] */
    struct phema_arena memory;
};

/* ---- Who compares ---- */

/* The rank that has made a part, plus one; 0: unknown */
static uint64_t find_maker(const struct join_check *check, uint64_t part)
{
    return part && part <= check->n_makers ? check->makers[part - 1] : 0;
}

uint32_t join_check_reader(const struct join_check *check,
                           const struct phema_writer_check_block *block, size_t number)
{
    const struct phema_team *team = check->team;
    if (!team)
        return 0;
    uint64_t maker = find_maker(check, block->first_part);
    bool is_known = maker;
    for (uint64_t part = block->first_part; part < block->last_part && is_known; part++)
        is_known = find_maker(check, part + 1);
    if (is_known && team->local_size == team->size)
        return PHEMA_CHECK_NOT;
    if (!maker || team->size == 1)
        return (uint32_t)(number % team->size);
    return (uint32_t)((maker + number % (team->size - 1)) % team->size);
}

static void deal(struct checks *checks, const struct join_check *check)
{
    size_t number = 0;
    for (size_t i = 0; i < checks->n; i++)
        for (size_t b = 0; b < checks->items[i].n_blocks; b++) {
            struct phema_writer_check_block *block = &checks->items[i].blocks[b];
            if (block->share != PHEMA_CHECK_NOT)
                block->share = join_check_reader(check, block, number++);
            checks->n_dealt += block->share != PHEMA_CHECK_NOT;
        }
}

/* ---- The lists of all outputs ---- */

static void clear(struct checks *checks)
{
    free(checks->items);
    free(checks->differs);
    phema_arena_clear(&checks->memory);
}

static enum phema_status prepare_differences(struct checks *checks, struct phema_error *err)
{
    for (size_t i = 0; i < checks->n; i++)
        checks->n_blocks += checks->items[i].n_blocks;
    checks->differs = calloc(checks->n_blocks + 1, sizeof(*checks->differs));
    return checks->differs ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status make_lists(struct checks *checks, const struct join_check *check,
                                    const struct phema_join_list *list, struct phema_error *err)
{
    checks->items = calloc(list->n + 1, sizeof(*checks->items));
    if (!checks->items)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (; checks->n < list->n && !status; checks->n++)
        status =
            phema_writer_join_list_blocks(&checks->items[checks->n], list->items[checks->n], err);
    if (status)
        return status;
    deal(checks, check);
    return prepare_differences(checks, err);
}

static void pack(struct checks *checks, struct phema_packer *packer)
{
    phema_pack_count(packer, &checks->n, sizeof(uint64_t));
    checks->items =
        phema_pack_owned_array(packer, checks->items, checks->n, sizeof(*checks->items));
    for (size_t i = 0; i < checks->n && checks->items; i++)
        phema_writer_check_pack(&checks->items[i], packer);
}

static enum phema_status receive_lists(struct checks *checks, const struct phema_strbuf *text,
                                       struct phema_error *err)
{
    struct phema_packer packer = {.rest = {(const uint8_t *)text->data, text->size},
                                  .arena = &checks->memory};
    pack(checks, &packer);
    enum phema_status status = phema_pack_check(&packer, err);
    return status ? status : prepare_differences(checks, err);
}

static enum phema_status compare(struct checks *checks, uint32_t share, struct phema_error *err)
{
    uint64_t *differs = checks->differs;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < checks->n && !status; i++) {
        status = phema_writer_check_compare(differs, &checks->items[i], share, err);
        differs += checks->items[i].n_blocks;
    }
    return status;
}

/* ---- A team ---- */

/* status: of this process so far, which receives nothing after a failure of rank 0 */
static enum phema_status compare_together(struct checks *checks, const struct phema_team *team,
                                          enum phema_status status, struct phema_error *err)
{
    status = status ? status : compare(checks, team->rank, err);
    status = team->agree(team->context, status, err);
    if (!status)
        team->sum(team->context, checks->differs, checks->n_blocks);
    return status;
}

/* Of rank 0, whose failure so far is not that of the others: they are told of nothing. */
static enum phema_status share(struct checks *checks, struct join_check *check,
                               enum phema_status status, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_packer packer = {.out = &text};
    check->is_shared = true;
    if (!status && checks->n_dealt) {
        pack(checks, &packer);
        status = phema_pack_check(&packer, err);
    }
    if (status)
        phema_strbuf_clear(&text);
    bool is_any = text.size;
    enum phema_status sent = team_send_text(&text, check->team, err);
    phema_strbuf_clear(&text);
    status = status ? status : sent;
    return status || !is_any ? status : compare_together(checks, check->team, status, err);
}

PHEMA_FALLIBLE join_check_list(struct join_check *check, const struct phema_join_list *list,
                               struct phema_error *err)
{
    struct checks checks = {.items = NULL};
    enum phema_status status = make_lists(&checks, check, list, err);
    if (check->team)
        status = share(&checks, check, status, err);
    else if (!status)
        status = compare(&checks, 0, err);
    const uint64_t *differs = checks.differs;
    for (size_t i = 0; i < list->n && !status; i++) {
        status = phema_writer_join_check(list->items[i], &checks.items[i], differs, err);
        differs += checks.items[i].n_blocks;
    }
    clear(&checks);
    return status;
}

void join_check_end(struct join_check *check)
{
    struct phema_strbuf nothing = {0};
    struct phema_error ignored;
    if (!check->is_shared)
        (void)!team_send_text(&nothing, check->team, &ignored);
    check->is_shared = true;
}

PHEMA_FALLIBLE join_check_follow(struct join_check *check, struct phema_error *err)
{
    struct checks checks = {.items = NULL};
    struct phema_strbuf text = {0};
    check->is_shared = true;
    enum phema_status status = team_send_text(&text, check->team, err);
    if (!status && text.size) {
        status = receive_lists(&checks, &text, err);
        status = compare_together(&checks, check->team, status, err);
    }
    phema_strbuf_clear(&text);
    clear(&checks);
    return status;
}
