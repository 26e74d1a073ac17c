// SPDX-License-Identifier: Apache-2.0
/* fuzz_spec.c - The first line as a SPEC, the rest as the table for its "table:T". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/profile.h"

#define END 1000.0

static void check_profile(const struct phema_profile *profile)
{
    fuzz_require(profile->t > 0 && profile->t <= END, "a profile ends where it was asked to");
    fuzz_require(profile->length >= 0 && profile->length <= profile->t,
                 "an average begins after the training does");
    fuzz_require(profile->half_life >= 0 && isfinite(profile->half_life), "half-lives are times");
    fuzz_require(profile->shape != PHEMA_SHAPE_POWER || profile->gamma > -0.5,
                 "power functions are square-integrable");
    if (profile->shape != PHEMA_SHAPE_TABLE)
        return;
    const struct phema_betas *betas = profile->betas;
    fuzz_require(betas && betas->n > 0 && (double)betas->steps[0] <= END, "a table has steps");
    for (size_t i = 0; betas && i < betas->n; i++) {
        fuzz_require(betas->betas[i] >= 0 && betas->betas[i] <= 1, "betas are shares");
        fuzz_require(betas->steps[i] > (i ? betas->steps[i - 1] : 0), "steps ascend");
    }
}

static void check_mix(struct phema_spec *spec)
{
    static const double times[] = {100, 250, 600, 1000};
    struct phema_mix mix = {0};
    struct phema_error err = {0};
    if (phema_spec_mix(&mix, spec, END, times, ARRAY_LEN(times), &err)) {
        fuzz_require(err.message[0] != '\0' && !mix.parts, "failures say why and change nothing");
        return;
    }
    double sum = 0, size = 1;
    for (size_t i = 0; i < mix.n_parts; i++) {
        check_profile(&mix.parts[i]);
        sum += mix.factors[i];
        size += fabs(mix.factors[i]);
    }
    double wanted = strcmp(spec->kind, "difference") == 0 ? 0 : 1;
    fuzz_require(fabs(sum - wanted) < 1e-12 * size, "factors add up to 1, of differences to 0");
}

/* The shown text reads back as the same SPEC, and the file part is a file name. */
static void check_shown(const struct phema_spec *spec, struct phema_arena *arena)
{
    struct phema_spec *again = NULL;
    struct phema_error err = {0};
    fuzz_require(phema_spec_parse(&again, arena, spec->canonical, &err) == PHEMA_OK,
                 "what is shown is a SPEC");
    fuzz_require(strcmp(again->canonical, spec->canonical) == 0, "and the same one");
    fuzz_require(spec->file_part[0] && !strchr(spec->file_part, '/') &&
                     strlen(spec->file_part) <= 120,
                 "a part of a name has no slash");
}

static void check_spec(const char *text)
{
    struct phema_arena arena = {0};
    struct phema_spec *spec = NULL;
    struct phema_error err = {0};
    if (phema_spec_parse(&spec, &arena, text, &err)) {
        fuzz_require(!spec, "outputs change only on success");
        fuzz_require(err.message[0] != '\0' && !strchr(err.message, '\n'), "one line says why");
    } else {
        check_shown(spec, &arena);
        check_mix(spec);
    }
    phema_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t line = end ? (size_t)(end - data) : size;
    char *text = malloc(line + 1);
    if (!text)
        return 0;
    memcpy(text, data, line);
    text[line] = '\0';
    if (strcmp(text, "table:T") == 0) {
        size_t rest = end ? size - line - 1 : 0;
        const char *path = fuzz_store("T", rest ? end + 1 : data, rest);
        struct phema_strbuf named = {0};
        phema_strbuf_printf(&named, "table:%s", path);
        if (!named.is_failed)
            check_spec(named.data);
        phema_strbuf_clear(&named);
    } else if (!strstr(text, "table:")) { /* any file */
        check_spec(text);
    }
    free(text);
    return 0;
}
