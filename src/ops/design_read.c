// SPDX-License-Identifier: Apache-2.0
/* design_read.c - a design from the file that `design -o` has written. */
#include <string.h>

#include "phema/design_question.h"
#include "phema/json.h"
#include "phema/mapped_file.h"

/* Designs take some KiB. */
#define MOST_BYTES ((size_t)1 << 20)

static enum phema_status fail(const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "is no design: %s; posthoc-ema design -o FILE writes one", what);
}

static enum phema_status read_times(struct design_read *out, struct phema_arena *arena,
                                    const struct phema_json *list, struct phema_error *err)
{
    size_t n = list ? phema_json_length(list) : 0;
    uint64_t *times = phema_arena_array(arena, n + 1, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (!phema_json_u64(&times[i], phema_json_at(list, i)) || times[i] == 0 ||
            (double)times[i] > out->until || (i && times[i] <= times[i - 1]))
            return fail("expected times that ascend from 1 to \"until\"", err);
    }
    out->times = times;
    out->n_times = n;
    return n ? PHEMA_OK : fail("expected \"times\"", err);
}

static bool read_dtype(enum phema_dtype *out, const struct phema_json *json)
{
    static const struct {
        const char *name;
        enum phema_dtype dtype;
    } dtypes[] = {{"f32", PHEMA_F32}, {"f16", PHEMA_F16}, {"bf16", PHEMA_BF16}};
    const struct phema_json *value = phema_json_get(json, "dtype");
    const char *name = value ? phema_json_string(value, NULL) : NULL;
    for (size_t i = 0; name && i < ARRAY_LEN(dtypes); i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

/* A width that exists, and that no other average has. */
static bool is_new_width(const double *sigma_rels, size_t n)
{
    struct phema_error ignored = {0};
    double gamma = 0;
    for (size_t i = 0; i < n; i++)
        if (sigma_rels[i] == sigma_rels[n])
            return false;
    return phema_gamma_from_sigma_rel(&gamma, sigma_rels[n], &ignored) == PHEMA_OK;
}

/* Power functions come by their width; an exponential average by its half-life. */
static enum phema_status read_averages(struct design_read *out, struct phema_arena *arena,
                                       const struct phema_json *list, struct phema_error *err)
{
    size_t n = list ? phema_json_length(list) : 0;
    if (n > PHEMA_DESIGN_MAX_WIDTHS)
        return fail("too many \"averages\"", err);
    double *sigma_rels = phema_arena_array(arena, n + 1, sizeof(*sigma_rels));
    if (!sigma_rels)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct phema_json *average = phema_json_at(list, i);
        const struct phema_json *half_life = phema_json_get(average, "half_life");
        const struct phema_json *sigma_rel = phema_json_get(average, "sigma_rel");
        double length = 0;
        if (!(half_life ? phema_json_number(&length, half_life)
                        : sigma_rel && phema_json_number(&sigma_rels[out->n], sigma_rel)))
            return fail("expected \"averages\" with sigma_rel or half_life", err);
        if (half_life && (out->ema || !(length > 0 && length < 0x1p53)))
            return fail("expected one half_life, above 0", err);
        if (!half_life && !is_new_width(sigma_rels, out->n))
            return fail("expected a sigma_rel above 0 and below 0.289, and each once", err);
        if (half_life) {
            out->ema = phema_arena_printf(arena, "ema:half-life=%.17g", length);
            if (!out->ema)
                return phema_fail_memory(err);
        } else {
            out->n++;
        }
    }
    out->sigma_rels = sigma_rels;
    return PHEMA_OK;
}

static enum phema_status read_design(struct design_read *out, struct phema_arena *arena,
                                     const struct phema_json *json, struct phema_error *err)
{
    const struct phema_json *until = phema_json_get(json, "until");
    const struct phema_json *raw = phema_json_get(json, "raw");
    const struct phema_json *every = phema_json_get(json, "raw_every");
    const struct phema_json *unit = phema_json_get(json, "unit");
    const char *counted = unit ? phema_json_string(unit, NULL) : NULL;
    out->counts_steps = !counted || strcmp(counted, "steps") == 0;
    if (phema_json_type(json) != PHEMA_JSON_OBJECT || !until ||
        !phema_json_number(&out->until, until) || !(out->until >= 1 && out->until < 0x1p53))
        return fail("expected \"until\"", err);
    if (!read_dtype(&out->dtype, json))
        return fail("expected \"dtype\", f32, f16 or bf16", err);
    out->has_raw = raw && phema_json_boolean(raw);
    if (every && (!phema_json_u64(&out->raw_every, every) || out->raw_every == 0 ||
                  (double)out->raw_every > out->until))
        return fail("expected a \"raw_every\" from 1 to \"until\"", err);
    enum phema_status status = read_times(out, arena, phema_json_get(json, "times"), err);
    if (!status)
        status = read_averages(out, arena, phema_json_get(json, "averages"), err);
    if (!status && out->n == 0 && !out->ema && !out->has_raw)
        status = fail("expected \"averages\" or \"raw\"", err);
    return status;
}

PHEMA_FALLIBLE design_read_file(struct design_read *out, struct phema_arena *arena,
                                const char *path, struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct phema_json *json = NULL;
    *out = (struct design_read){0};
    enum phema_status status = phema_file_open(&file, path, err);
    if (status)
        return phema_fail_in(err, status, "%s", path);
    struct phema_span text = phema_file_span(file);
    status =
        text.size > MOST_BYTES ? fail("it is too large", err) : phema_json_parse(&json, text, err);
    if (!status)
        status = read_design(out, arena, json, err);
    phema_json_free(json);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}
