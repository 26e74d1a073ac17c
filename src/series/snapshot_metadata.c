// SPDX-License-Identifier: Apache-2.0
/* snapshot_metadata.c - time and width from metadata and bookkeeping tensors. */
#include "candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/setting.h"

/* NaN when the key is missing. */
static enum phema_status read_number(double *out, const struct phema_checkpoint *checkpoint,
                                     const char *key, struct phema_error *err)
{
    *out = PHEMA_UNKNOWN;
    const char *text = phema_checkpoint_metadatum(checkpoint, key);
    if (!text)
        return PHEMA_OK;
    char *end = NULL;
    double value = strtod(text, &end);
    struct phema_name_buffer shown;
    if (end == text || *end || !isfinite(value))
        return phema_fail(err, PHEMA_ERR_INPUTS, "metadata %s is '%s', expected a number", key,
                          phema_name_show(&shown, text));
    *out = value;
    return PHEMA_OK;
}

static enum phema_status fail_disagrees(const char *what, double named, double inside,
                                        struct phema_error *err)
{
    struct phema_name_buffer name, metadata;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "its name or manifest says %s %s, its metadata %s; correct the wrong one",
                      what, phema_number_format(&name, named),
                      phema_number_format(&metadata, inside));
}

/* Metadata replace a name, whose digits are rounded. */
static enum phema_status reconcile(double *named, double inside, double slack, const char *what,
                                   struct phema_error *err)
{
    if (isnan(inside))
        return PHEMA_OK;
    if (!isnan(*named) && fabs(*named - inside) > slack)
        return fail_disagrees(what, *named, inside, err);
    *named = inside;
    return PHEMA_OK;
}

/* A manifest may give the exponent instead of the width. */
static enum phema_status reconcile_width(struct candidate *candidate, double sigma_rel,
                                         double gamma, struct phema_error *err)
{
    if (candidate->spec && (!isnan(sigma_rel) || !isnan(gamma)))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its label says %s, but its metadata have the width of a power function; "
                          "correct the wrong one",
                          candidate->spec->canonical);
    if (isnan(candidate->gamma)) {
        enum phema_status status =
            reconcile(&candidate->sigma_rel, sigma_rel, candidate->sigma_slack, "sigma_rel", err);
        if (status)
            return status;
    }
    double inside = gamma;
    struct phema_error ignored = {0}; /* the caller reports that there is no such average */
    if (isnan(gamma) && !isnan(sigma_rel) &&
        phema_gamma_from_sigma_rel(&inside, sigma_rel, &ignored))
        inside = PHEMA_UNKNOWN;
    if (isnan(inside))
        return PHEMA_OK;
    if (!isnan(candidate->gamma) && fabs(candidate->gamma - inside) > 1e-9 * (1 + fabs(inside)))
        return fail_disagrees("gamma", candidate->gamma, inside, err);
    if (isnan(candidate->sigma_rel))
        candidate->gamma = inside;
    return PHEMA_OK;
}

static enum phema_status reconcile_update_every(struct candidate *candidate, double inside,
                                                struct phema_error *err)
{
    if (isnan(inside))
        return PHEMA_OK;
    if (candidate->update_every && (double)candidate->update_every != inside)
        return fail_disagrees("update_every", (double)candidate->update_every, inside, err);
    if (inside < 1 || inside > 1e9 || inside != floor(inside))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "metadata posthoc_ema.update_every is %g, expected a whole number of "
                          "steps",
                          inside);
    candidate->update_every = (uint64_t)inside;
    return PHEMA_OK;
}

static enum phema_status fail_other_profile(const struct candidate *candidate, const char *inside,
                                            struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "its name or manifest says %s, its metadata profile '%s'; correct the wrong one",
        candidate->spec ? candidate->spec->canonical : "the width of a power function",
        phema_name_show(&shown, inside));
}

/* The profile in a file's metadata. Power functions are read from the numbers that accompany it. A
 * path inside a checkpoint is never opened: only the user names tables. */
static enum phema_status read_profile(struct candidate *candidate, struct phema_specs *specs,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    static const char key[] = "posthoc_ema.profile";
    const char *text = phema_checkpoint_metadatum(checkpoint, key);
    if (!text || strncmp(text, "power:", 6) == 0)
        return PHEMA_OK;
    if (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma))
        return fail_other_profile(candidate, text, err);
    if (strstr(text, "table:"))
        return PHEMA_OK;
    struct phema_spec *spec = NULL;
    struct phema_name_buffer shown;
    enum phema_status status = phema_specs_find(&spec, specs, text, err);
    if (!status && !spec->is_average)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "'%s': is no average of one training",
                            phema_name_show(&shown, text));
    if (status)
        return phema_fail_in(err, status == PHEMA_ERR_RESOURCE ? status : PHEMA_ERR_INPUTS,
                             "metadata %s", key);
    if (candidate->spec && strcmp(candidate->spec->canonical, spec->canonical) != 0)
        return fail_other_profile(candidate, spec->canonical, err);
    if (!candidate->spec)
        candidate->is_raw_inside = strcmp(spec->kind, "raw") == 0;
    candidate->spec = spec;
    return PHEMA_OK;
}

PHEMA_FALLIBLE snapshot_metadata_read(struct candidate *candidate, bool *is_output,
                                      const char **unit, struct phema_specs *specs,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    *is_output = phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance") != NULL;
    if (*is_output)
        return PHEMA_OK;
    enum { TIME, SIGMA_REL, GAMMA, UPDATE_EVERY, N_NUMBERS };
    static const char *const keys[N_NUMBERS] = {"posthoc_ema.time", "posthoc_ema.sigma_rel",
                                                "posthoc_ema.gamma", "posthoc_ema.update_every"};
    double inside[N_NUMBERS];
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < N_NUMBERS && !status; i++)
        status = read_number(&inside[i], checkpoint, keys[i], err);
    if (status)
        return status;
    status = reconcile(&candidate->named_time, inside[TIME], 0, "time", err);
    if (status)
        return status;
    status = read_profile(candidate, specs, checkpoint, err);
    if (status)
        return status;
    status = reconcile_width(candidate, inside[SIGMA_REL], inside[GAMMA], err);
    if (status)
        return status;
    status = reconcile_update_every(candidate, inside[UPDATE_EVERY], err);
    if (status)
        return status;
    *unit = phema_checkpoint_metadatum(checkpoint, "posthoc_ema.unit");
    return PHEMA_OK;
}

bool snapshot_metadata_is_frozen(const struct phema_checkpoint *checkpoint)
{
    return phema_checkpoint_metadatum(checkpoint, PHEMA_FROZEN_DIGEST) &&
           !phema_checkpoint_metadatum(checkpoint, PHEMA_FROZEN_FILE);
}

/* An element of a tensor in C order; NaN where it is absent (tensor may be NULL), or of another
 * dtype. */
static double read_number_at(const struct phema_checkpoint *checkpoint,
                             const struct phema_tensor *tensor, uint64_t index)
{
    if (!tensor || index >= tensor->n_elems || tensor->dtype >= PHEMA_F6_E2M3)
        return PHEMA_UNKNOWN;
    struct phema_error ignored = {0};
    struct phema_reader *reader = NULL;
    uint8_t scratch[16];
    const uint8_t *data = NULL;
    enum phema_status status = phema_reader_open(&reader, checkpoint, &ignored);
    if (!status)
        status = phema_reader_read(&data, reader, tensor, index, 1, scratch, &ignored);
    double value = PHEMA_UNKNOWN;
    if (!status && tensor->dtype == PHEMA_I64)
        value = (double)(int64_t)phema_load_u64(data);
    else if (!status && tensor->dtype == PHEMA_I32)
        value = (int32_t)phema_load_u32(data);
    else if (!status && tensor->dtype >= PHEMA_F16 && tensor->dtype <= PHEMA_F64)
        value = phema_element_widen(tensor->dtype, data, 0);
    phema_reader_close(reader);
    return value;
}

/* The same; NaN where the dtype is too narrow for counters. */
static double read_element(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t index)
{
    bool is_narrow = !tensor || phema_dtype_bits(tensor->dtype) < 32;
    return is_narrow ? PHEMA_UNKNOWN : read_number_at(checkpoint, tensor, index);
}

double snapshot_metadata_scalar(const struct phema_checkpoint *checkpoint, const char *name)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, name, strlen(name));
    return tensor && tensor->n_elems == 1 ? read_element(checkpoint, tensor, 0) : PHEMA_UNKNOWN;
}

double snapshot_metadata_rounded(const struct phema_checkpoint *checkpoint, const char *name,
                                 double *within)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, name, strlen(name));
    *within = 0;
    if (!tensor || tensor->n_elems != 1)
        return PHEMA_UNKNOWN;
    double value = read_number_at(checkpoint, tensor, 0);
    if (!(value > 0) || phema_dtype_bits(tensor->dtype) >= 32)
        return value;
    *within = isinf(value) ? value : phema_element_spacing(tensor->dtype, value) / 2;
    return isinf(value) ? 0x1p15 : value; /* some count */
}

double snapshot_metadata_value(const struct phema_checkpoint *checkpoint, const char *name)
{
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    double number = PHEMA_UNKNOWN;
    for (size_t i = 0; i < phema_checkpoint_n_values(checkpoint); i++) {
        if (!phema_bytes_are(values[i].name, values[i].name_size, name))
            continue;
        if (!isnan(number) && number != values[i].number)
            return PHEMA_UNKNOWN;
        number = values[i].number;
    }
    return number;
}

double snapshot_metadata_item(const struct phema_checkpoint *checkpoint, const char *prefix,
                              size_t prefix_size, const char *end, size_t index)
{
    struct phema_strbuf name = {0};
    phema_strbuf_append(&name, prefix, prefix_size);
    phema_strbuf_puts(&name, end);
    size_t list_size = name.size;
    phema_strbuf_printf(&name, ".%zu", index);
    double number = name.is_failed ? PHEMA_UNKNOWN : snapshot_metadata_value(checkpoint, name.data);
    if (!name.is_failed && isnan(number))
        number = read_element(checkpoint, phema_checkpoint_find(checkpoint, name.data, list_size),
                              index);
    phema_strbuf_clear(&name);
    return number;
}

PHEMA_FALLIBLE snapshot_metadata_check_counter(double *behind, const struct candidate *candidate,
                                               const struct layout *layout, double time_offset,
                                               const struct phema_checkpoint *checkpoint,
                                               struct phema_error *err)
{
    if (!layout->counter)
        return PHEMA_OK;
    double inside = snapshot_metadata_value(checkpoint, layout->counter),
           named = candidate->named_time;
    double on_clock = layout->clock ? layout->clock(named) : named, here = inside - on_clock;
    bool is_known = !isnan(*behind), is_rounded = floor(inside / layout->counts_per_time) == named;
    if (isnan(here) || (is_rounded && here != 0))
        return PHEMA_OK;
    if ((here == 0 || here == time_offset) && (!is_known || here == *behind)) {
        *behind = here;
        return PHEMA_OK;
    }
    struct phema_name_buffer shown, counted;
    if (here == 1 && time_offset == 0 && !is_known) { /* Lightning before 1.6 */
        (void)phema_fail(err, PHEMA_ERR_INPUTS,
                         "its name says time %s, but '%s' inside is %s; %s1 adds 1 to all times",
                         phema_number_format(&shown, named), layout->counter,
                         phema_number_format(&counted, inside),
                         phema_setting_equals(PHEMA_SET_TIME_OFFSET));
        return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_TIME_OFFSET, "1");
    }
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "its name says time %s, but '%s' inside is %s; correct the wrong one",
                      phema_number_format(&shown, named), layout->counter,
                      phema_number_format(&counted, inside));
}

/* A provenance has a line for each snapshot, far less than this. */
#define MAX_DESCRIPTION ((size_t)64 << 20)

bool snapshot_metadata_is_described_output(const char *path)
{
    static const char *const ends[] = {".json", "/" PHEMA_PROVENANCE_FILE};
    bool is_output = false;
    for (size_t e = 0; e < ARRAY_LEN(ends) && !is_output; e++) {
        struct phema_error ignored = {0};
        struct phema_strbuf name = {0};
        struct phema_file *file = NULL;
        struct phema_json *root = NULL;
        phema_strbuf_printf(&name, "%s%s", path, ends[e]);
        if (!name.is_failed && phema_file_open(&file, name.data, &ignored) == PHEMA_OK &&
            phema_file_span(file).size <= MAX_DESCRIPTION &&
            phema_json_parse(&root, phema_file_span(file), &ignored) == PHEMA_OK)
            is_output = phema_json_get(root, "posthoc_ema.provenance") != NULL;
        phema_json_free(root);
        phema_file_close(file);
        phema_strbuf_clear(&name);
    }
    return is_output;
}
