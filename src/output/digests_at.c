// SPDX-License-Identifier: Apache-2.0
/* digests_at.c - where in a header, or beside an output, the digests stand that are only known when
 * all snapshots have been read. They are looked for as they were written: what names of files and
 * tensors or metadata of others may hold is escaped once more, and cannot look the same. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "provenance_write.h"

/* The provenance is an object in OUT.json, and a string in a header. */
static const struct {
    const char *start, *member;
} written[] = {
    {"\n \"posthoc_ema.provenance\": {", "\"" PROVENANCE_DATA_DIGEST "\":\""},
    {"\"posthoc_ema.provenance\":\"{", "\\\"" PROVENANCE_DATA_DIGEST "\\\":\\\""},
};

/* Behind the next one from *at on; NULL where there is none. */
static const char *find_next(const char *text, size_t size, size_t at, const char *wanted)
{
    const char *found = memmem(text + at, size - at, wanted, strlen(wanted));
    return found ? found + strlen(wanted) : NULL;
}

PHEMA_FALLIBLE outputs_find_digests(const struct draft *draft, struct phema_output *output,
                                    size_t target, const char *text, size_t size,
                                    struct phema_error *err)
{
    if (!draft->options->hashes_inputs)
        return PHEMA_OK;
    size_t n = draft->plan->series->n - draft->plan->targets[target].n_left_out;
    bool is_header = draft->outputs->form != PHEMA_FORM_TEMPLATE;
    const char *at = find_next(text, size, 0, written[is_header].start);
    output->digests_at = calloc(n + 1, sizeof(*output->digests_at));
    if (!output->digests_at)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n && at; k++) {
        at = find_next(text, size, (size_t)(at - text), written[is_header].member);
        output->digests_at[k] = at ? (size_t)(at - text) : 0;
    }
    if (!at)
        return phema_fail(err, PHEMA_BUG, "%s: no place for the digests of snapshots",
                          output->path);
    output->n_digests = n;
    return PHEMA_OK;
}

void phema_output_put_digests(struct phema_output *output, const struct phema_hash_sum *sums)
{
    char *text = output->sidecar ? output->sidecar : (char *)output->files[0].header;
    for (size_t k = 0; k < output->n_digests; k++) {
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &sums[k]);
        memcpy(text + output->digests_at[k], digits, PHEMA_DIGEST - 1);
    }
}
