// SPDX-License-Identifier: Apache-2.0
/* call.c - entry and exit of every public call. */
#include "api.h"

#include <stdio.h>
#include <string.h>

#include "phema/cleanup.h"

/* Messages name settings as arguments. */
const bool phema_settings_are_options = false;

struct call call_begin(void)
{
    struct call call = {.during = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (call.during)
        call.before = uselocale(call.during);
    return call;
}

enum posthoc_ema_status call_end(struct call *call, enum phema_status status,
                                 struct posthoc_ema_error *error)
{
    if (status && error) {
        struct phema_strbuf shown = {0}; /* escaped, since programs print it */
        phema_strbuf_puts_escaped(&shown, call->err.message);
        const char *message = shown.data && !shown.is_failed ? shown.data : "out of memory";
        int needed = snprintf(error->message, sizeof(error->message), "%s", message);
        if (needed >= (int)sizeof(error->message))
            memcpy(error->message + sizeof(error->message) - 4, "...", 4);
        phema_strbuf_clear(&shown);
    }
    if (call->during) {
        (void)uselocale(call->before);
        freelocale(call->during);
    }
    return (enum posthoc_ema_status)status;
}

static size_t size_of(const void *given)
{
    size_t size = 0;
    memcpy(&size, given, sizeof(size)); /* the first member of every struct */
    return size;
}

static enum phema_status fail_size(const void *given, size_t known_size, const char *name,
                                   struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "struct %s: expected size to be sizeof (%zu), found %zu", name, known_size,
                      size_of(given));
}

PHEMA_FALLIBLE call_read_struct(void *known, size_t known_size, const void *given, const char *name,
                                struct phema_error *err)
{
    memset(known, 0, known_size);
    if (!given)
        return PHEMA_OK;
    size_t size = size_of(given);
    if (size < sizeof(size) || size > 4096)
        return fail_size(given, known_size, name, err);
    for (size_t i = known_size; i < size; i++)
        if (((const char *)given)[i])
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "struct %s: has options of a newer version than " PHEMA_VERSION,
                              name);
    memcpy(known, given, size < known_size ? size : known_size);
    return PHEMA_OK;
}

PHEMA_FALLIBLE call_fill_struct(void *given, const void *known, size_t known_size, const char *name,
                                struct phema_error *err)
{
    size_t size = size_of(given), head = sizeof(size);
    if (size < head || size > 4096)
        return fail_size(given, known_size, name, err);
    size_t common = size < known_size ? size : known_size;
    memset((char *)given + head, 0, size - head);
    memcpy((char *)given + head, (const char *)known + head, common - head);
    return PHEMA_OK;
}

PHEMA_FALLIBLE call_check_index(const char *what, size_t i, size_t n, struct phema_error *err)
{
    return i < n ? PHEMA_OK
                 : phema_fail(err, PHEMA_ERR_USAGE, "%s %zu: there are %zu, from 0", what, i, n);
}

PHEMA_FALLIBLE call_find_choice(size_t *index, const char *word, const char *const *names,
                                const char *option, struct phema_error *err)
{
    *index = 0;
    if (!word)
        return PHEMA_OK;
    struct phema_strbuf known = {0};
    for (size_t i = 0; names[i]; i++) {
        if (strcmp(word, names[i]) == 0) {
            *index = i;
            phema_strbuf_clear(&known);
            return PHEMA_OK;
        }
        phema_strbuf_printf(&known, "%s%s", i ? "|" : "", names[i]);
    }
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "%s: '%.100s' is not one of %s",
                                          option, word, known.data ? known.data : "");
    phema_strbuf_clear(&known);
    return status;
}

const char *posthoc_ema_version(void)
{
    return PHEMA_VERSION;
}

void posthoc_ema_handle_signals(void)
{
    phema_cleanup_install_handlers();
}
