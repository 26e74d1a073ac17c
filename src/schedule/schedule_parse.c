// SPDX-License-Identifier: Apache-2.0
/* schedule_parse.c - a schedule from a text: that of a usual one, "cosine:warmup=2k,end=0.1", or the
 * path of a log. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/number.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "schedule_pieces.h"

#define MAX_TEXT ((size_t)256)
#define MAX_RATE 1e6 /* of the highest */

enum kind { CONSTANT, LINEAR, COSINE, WSD, INVERSE_SQRT, ONECYCLE, N_KINDS };
enum key { STEPS, WARMUP, DECAY, REFERENCE, START, END, N_KEYS };

static const struct {
    const char *name;
    bool has[N_KEYS];
} kinds[] = {
    [CONSTANT] = {"constant", {[STEPS] = true, [WARMUP] = true}},
    [LINEAR] = {"linear", {[STEPS] = true, [WARMUP] = true, [END] = true}},
    [COSINE] = {"cosine", {[STEPS] = true, [WARMUP] = true, [END] = true}},
    [WSD] = {"wsd", {[STEPS] = true, [WARMUP] = true, [DECAY] = true, [END] = true}},
    [INVERSE_SQRT] = {"inverse-sqrt", {[STEPS] = true, [WARMUP] = true, [REFERENCE] = true}},
    [ONECYCLE] = {"onecycle", {[STEPS] = true, [WARMUP] = true, [START] = true, [END] = true}},
};

static const char *const keys[N_KEYS] = {
    [STEPS] = "steps",         [WARMUP] = "warmup", [DECAY] = "decay",
    [REFERENCE] = "reference", [START] = "start",   [END] = "end",
};

struct spec {
    enum kind kind;
    double values[N_KEYS]; /* NaN: not given */
    bool is_part[N_KEYS];  /* of the run */
};

static enum kind find_kind(const char *text)
{
    size_t size = strcspn(text, ":");
    enum kind kind = 0;
    while (kind < N_KINDS && !phema_bytes_are(text, size, kinds[kind].name))
        kind++;
    return kind;
}

bool phema_schedule_is_spec(const char *text)
{
    return find_kind(text) < N_KINDS;
}

static enum phema_status fail_key(enum kind kind, const char *name, struct phema_error *err)
{
    struct phema_strbuf list = {0};
    for (size_t k = 0; k < N_KEYS; k++)
        if (kinds[kind].has[k])
            phema_strbuf_printf(&list, "%s%s", list.size ? ", " : "", keys[k]);
    enum phema_status status = phema_strbuf_check(&list, err);
    if (!status)
        status =
            phema_fail(err, PHEMA_ERR_USAGE, "expected one of %s, found '%s'", list.data, name);
    phema_strbuf_clear(&list);
    return status;
}

/* "end=0.1"; a rate is a number, a time may be "20%". */
static enum phema_status read_key(struct spec *spec, char *text, struct phema_error *err)
{
    char *value = strchr(text, '=');
    if (!value)
        return phema_fail(err, PHEMA_ERR_USAGE, "expected KEY=VALUE, found '%s'", text);
    *value++ = '\0';
    size_t k = 0;
    while (k < N_KEYS && !(kinds[spec->kind].has[k] && strcmp(keys[k], text) == 0))
        k++;
    if (k == N_KEYS)
        return fail_key(spec->kind, text, err);
    if (!isnan(spec->values[k]))
        return phema_fail(err, PHEMA_ERR_USAGE, "%s is given twice", text);
    bool is_time = k != START && k != END;
    size_t size = strlen(value);
    spec->is_part[k] = is_time && k != STEPS && size && value[size - 1] == '%';
    if (spec->is_part[k])
        value[size - 1] = '\0';
    double number = 0;
    enum phema_status status = phema_number_parse(&number, value, err);
    double most = spec->is_part[k] ? 100 : is_time ? 0x1p53 : MAX_RATE;
    if (!status && !(number >= 0 && number <= most && (k != STEPS || number > 0)))
        status = phema_fail(err, PHEMA_ERR_USAGE, "expected a number %s, up to %g, found %s",
                            k == STEPS ? "above 0" : "from 0 on", most, value);
    spec->values[k] = number;
    return status ? phema_fail_in(err, status, "%s", text) : PHEMA_OK;
}

static enum phema_status read_keys(struct spec *spec, const char *text, struct phema_error *err)
{
    char copy[MAX_TEXT];
    const char *colon = strchr(text, ':');
    if (!colon)
        return PHEMA_OK;
    if (strlen(colon + 1) >= sizeof(copy))
        return phema_fail(err, PHEMA_ERR_USAGE, "is longer than %zu bytes", MAX_TEXT);
    memcpy(copy, colon + 1, strlen(colon + 1) + 1);
    for (char *at = copy; at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = '\0';
        enum phema_status status = read_key(spec, at, err);
        if (status)
            return status;
        at = comma;
    }
    return PHEMA_OK;
}

static double or_default(const struct spec *spec, enum key key, double otherwise)
{
    return isnan(spec->values[key]) ? otherwise : spec->values[key];
}

/* otherwise: a part of the run */
static double time_of(const struct spec *spec, enum key key, double otherwise)
{
    double steps = spec->values[STEPS];
    if (isnan(spec->values[key]))
        return otherwise > 0 ? otherwise * steps : 0;
    return spec->is_part[key] ? spec->values[key] / 100 * steps : spec->values[key];
}

/* Continues the schedule to a step and a rate. */
static enum phema_status go_on(struct phema_schedule *schedule, enum schedule_form form, double end,
                               double to, struct phema_error *err)
{
    const struct schedule_piece *last = &schedule->pieces[schedule->n - 1];
    if (!(end > last->end))
        return PHEMA_OK;
    const struct schedule_piece piece = {last->end, end, last->to, to, form};
    return schedule_add_piece(schedule, &piece, err);
}

static enum phema_status build_after_warmup(struct phema_schedule *schedule,
                                            const struct spec *spec, double warmup,
                                            struct phema_error *err)
{
    double steps = spec->values[STEPS], end = or_default(spec, END, 0);
    double constant = steps - time_of(spec, DECAY, 0.2);
    double reference = fmax(warmup, time_of(spec, REFERENCE, 0));
    enum phema_status status = PHEMA_OK;
    switch (spec->kind) {
    case LINEAR:
        return go_on(schedule, SCHEDULE_LINEAR, steps, end, err);
    case COSINE:
        return go_on(schedule, SCHEDULE_COSINE, steps, end, err);
    case ONECYCLE:
        return go_on(schedule, SCHEDULE_COSINE, steps, or_default(spec, END, 4e-6), err);
    case WSD:
        status = go_on(schedule, SCHEDULE_LINEAR, constant, 1, err);
        return status ? status : go_on(schedule, SCHEDULE_LINEAR, steps, end, err);
    case INVERSE_SQRT:
        status = go_on(schedule, SCHEDULE_LINEAR, reference, 1, err);
        return status ? status
                      : go_on(schedule, SCHEDULE_INVERSE_SQRT, steps, sqrt(reference / steps), err);
    default:
        return go_on(schedule, SCHEDULE_LINEAR, steps, 1, err);
    }
}

static enum phema_status check_times(const struct spec *spec, double warmup,
                                     struct phema_error *err)
{
    double steps = spec->values[STEPS];
    double decay = spec->kind == WSD ? time_of(spec, DECAY, 0.2) : 0;
    struct phema_name_buffer shown;
    if (!(warmup + decay <= steps))
        return phema_fail(err, PHEMA_ERR_USAGE, "%s longer than the run of %s steps",
                          decay > 0 ? "warmup and decay are" : "warmup is",
                          phema_number_format(&shown, steps));
    if (spec->kind == INVERSE_SQRT && !(fmax(warmup, time_of(spec, REFERENCE, 0)) > 0))
        return phema_fail(err, PHEMA_ERR_USAGE, "needs the key reference, or a warmup");
    return PHEMA_OK;
}

static enum phema_status build(struct phema_schedule *schedule, const struct spec *spec,
                               struct phema_error *err)
{
    bool is_cycle = spec->kind == ONECYCLE;
    double warmup = time_of(spec, WARMUP, is_cycle ? 0.3 : 0);
    double start = is_cycle ? or_default(spec, START, 0.04) : 0;
    enum phema_status status = check_times(spec, warmup, err);
    if (status)
        return status;
    const struct schedule_piece first = {0, warmup, warmup > 0 ? start : 1, 1,
                                         is_cycle ? SCHEDULE_COSINE : SCHEDULE_LINEAR};
    status = schedule_add_piece(schedule, &first, err);
    return status ? status : build_after_warmup(schedule, spec, warmup, err);
}

static enum phema_status parse_spec(struct phema_schedule *schedule, const char *text, double steps,
                                    struct phema_error *err)
{
    struct spec spec = {.kind = find_kind(text)};
    for (size_t k = 0; k < N_KEYS; k++)
        spec.values[k] = PHEMA_UNKNOWN;
    enum phema_status status = read_keys(&spec, text, err);
    if (!status && isnan(spec.values[STEPS]))
        spec.values[STEPS] = steps;
    if (!status && !(spec.values[STEPS] > 0 && spec.values[STEPS] <= 0x1p53))
        status = phema_fail(err, PHEMA_ERR_USAGE, "needs the key steps, the length of the run");
    if (!status)
        status = build(schedule, &spec, err);
    return status ? phema_fail_in(err, status, "%s", kinds[spec.kind].name) : PHEMA_OK;
}

/* Neither a kind nor a file: the kind that begins alike. */
static enum phema_status fail_kind(const char *text, struct phema_error *err)
{
    const char *near = kinds[COSINE].name;
    for (size_t kind = 0; kind < N_KINDS; kind++)
        if (strncmp(kinds[kind].name, text, 3) == 0)
            near = kinds[kind].name;
    struct phema_name_buffer shown;
    (void)phema_fail(err, PHEMA_ERR_USAGE,
                     "'%s' is no file, and no schedule such as constant, linear, "
                     "cosine, wsd, inverse-sqrt or onecycle",
                     phema_name_show(&shown, text));
    return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_SCHEDULE, near);
}

PHEMA_FALLIBLE phema_schedule_parse(struct phema_schedule **out, const char *text, double steps,
                                    struct phema_error *err)
{
    struct phema_schedule *schedule = calloc(1, sizeof(*schedule));
    if (!schedule)
        return phema_fail_memory(err);
    enum phema_status status = phema_schedule_is_spec(text)
                                   ? parse_spec(schedule, text, steps, err)
                                   : schedule_read_log(schedule, text, err);
    if (status == PHEMA_ERR_FILE && !strpbrk(text, "./") && access(text, F_OK))
        status = fail_kind(text, err);
    if (status)
        phema_schedule_free(schedule);
    else
        *out = schedule;
    return status;
}
