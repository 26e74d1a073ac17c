// SPDX-License-Identifier: Apache-2.0
/* listener.c - sentences and stages for a listener. */
#include "listener.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct phema_listener phema_nobody = {.context = NULL};

static void PHEMA_PRINTF(3, 0) tell(void (*hear)(void *context, const char *sentence),
                                    void *context, const char *format, va_list args)
{
    char *sentence = NULL;
    if (!hear || vasprintf(&sentence, format, args) < 0)
        return;
    hear(context, sentence);
    free(sentence);
}

void listener_note(const struct phema_listener *listener, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(listener->note, listener->context, format, args);
    va_end(args);
}

void listener_detail(const struct phema_listener *listener, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(listener->detail, listener->context, format, args);
    va_end(args);
}

void listener_warn(const struct phema_listener *listener, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell(listener->warn, listener->context, format, args);
    va_end(args);
}

void listener_stage(const struct phema_listener *listener, const char *name)
{
    if (listener->stage)
        listener->stage(listener->context, name);
}

void listener_advance(const struct phema_listener *listener, uint64_t done_bytes,
                      uint64_t total_bytes)
{
    if (listener->advance)
        listener->advance(listener->context, done_bytes, total_bytes);
}

void listener_begin(const struct phema_listener *listener, enum phema_kept kept,
                    struct phema_synth_options *options)
{
    if (listener->begin)
        listener->begin(listener->context, kept);
    options->report = listener->report;
    options->context = listener->context;
}

void listener_end(const struct phema_listener *listener, struct phema_synth_options *options)
{
    if (listener->end)
        listener->end(listener->context);
    options->report = NULL;
    options->context = NULL;
}
