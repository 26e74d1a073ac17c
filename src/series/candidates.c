// SPDX-License-Identifier: Apache-2.0
/* candidates.c - the candidate list and its notes. */
#include "candidates.h"

#include <stdio.h>
#include <string.h>

struct candidate *candidates_add(struct candidate_list *candidates)
{
    if (candidates->n == candidates->capacity) {
        size_t capacity = candidates->capacity ? 2 * candidates->capacity : 64;
        struct candidate *items = phema_arena_array(candidates->arena, capacity, sizeof(*items));
        if (!items)
            return NULL;
        if (candidates->n)
            memcpy(items, candidates->items, candidates->n * sizeof(*items));
        candidates->items = items;
        candidates->capacity = capacity;
    }
    struct candidate *candidate = &candidates->items[candidates->n++];
    *candidate = (struct candidate){.named_time = PHEMA_UNKNOWN,
                                    .sigma_rel = PHEMA_UNKNOWN,
                                    .gamma = PHEMA_UNKNOWN,
                                    .index = UINT64_MAX};
    return candidate;
}

void candidates_note(struct candidate_list *candidates, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    phema_strbuf_append(candidates->notes, sentence, strlen(sentence) + 1);
}
