// SPDX-License-Identifier: Apache-2.0
/* schedule.c - learning rates: the rate at a step, and integrals of its square, piece by piece; and
 * schedules from texts. Such a text is that of a usual one, "cosine:warmup=2k,end=0.1", or a file's
 * path: learning rates as a trainer has logged them, as CSV or JSON lines. */
#include "phema/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/array.h"
#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/number.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

enum schedule_form {
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,      /* half of one, level at both ends */
    SCHEDULE_INVERSE_SQRT /* from * sqrt(begin / step) */
};

struct schedule_piece {
    double begin, end; /* [steps] */
    double from, to;   /* rates at its ends */
    enum schedule_form form;
};

struct phema_schedule {
    struct schedule_piece *pieces; /* [n] without gaps; at least one */
    size_t n, capacity;
};

/* Of a cosine, that one Gauss rule is exact for: 0.4 radians of its square, to 1e-17. */
#define RULE_PART (1.0 / 16)

static enum phema_status add_piece(struct phema_schedule *schedule,
                                   const struct schedule_piece *piece, struct phema_error *err)
{
    if (!phema_array_grow(&schedule->pieces, &schedule->capacity, schedule->n, sizeof(*piece)))
        return phema_fail_memory(err);
    schedule->pieces[schedule->n++] = *piece;
    return PHEMA_OK;
}

enum phema_status phema_schedule_make_jump(struct phema_schedule **out, double step, double rate,
                                           struct phema_error *err)
{
    /* the rate stays as it is before the first piece and after the last one */
    const struct schedule_piece before = {step / 2, step, 1, 1, SCHEDULE_LINEAR},
                                after = {step, step * 2, rate, rate, SCHEDULE_LINEAR};
    struct phema_schedule *schedule = calloc(1, sizeof(*schedule));
    if (!schedule)
        return phema_fail_memory(err);
    enum phema_status status = add_piece(schedule, &before, err);
    if (!status)
        status = add_piece(schedule, &after, err);
    if (status)
        phema_schedule_free(schedule);
    else
        *out = schedule;
    return status;
}

void phema_schedule_free(struct phema_schedule *schedule)
{
    if (schedule)
        free(schedule->pieces);
    free(schedule);
}

/* ---- Rates ---- */

/* At a distance from the end of the piece with the lower rate: exact where that is 0. */
static double cosine_rate(const struct schedule_piece *piece, double distance)
{
    double risen = sin(M_PI_2 * distance / (piece->end - piece->begin));
    return fmin(piece->from, piece->to) + fabs(piece->from - piece->to) * risen * risen;
}

static double low_end(const struct schedule_piece *piece)
{
    return piece->to < piece->from ? piece->end : piece->begin;
}

static double rate_in(const struct schedule_piece *piece, double step)
{
    double length = piece->end - piece->begin;
    switch (piece->form) {
    case SCHEDULE_INVERSE_SQRT:
        return piece->from * sqrt(piece->begin / step);
    case SCHEDULE_COSINE:
        return cosine_rate(piece, fabs(step - low_end(piece)));
    case SCHEDULE_LINEAR:
        break;
    }
    return piece->from * ((piece->end - step) / length) +
           piece->to * ((step - piece->begin) / length);
}

/* The first piece that ends after a step; n: none. */
static size_t find_piece(const struct phema_schedule *schedule, double step)
{
    size_t low = 0, high = schedule->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (schedule->pieces[middle].end <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double phema_schedule_rate(const struct phema_schedule *schedule, double step)
{
    size_t at = find_piece(schedule, step);
    if (at == schedule->n)
        return schedule->pieces[schedule->n - 1].to;
    const struct schedule_piece *piece = &schedule->pieces[at];
    return step <= piece->begin ? piece->from : rate_in(piece, step);
}

/* ---- Squares ---- */

/* Gauss-Legendre of 5 points between two distances; all terms are positive, so that small integrals
 * are exact, too. */
static double gauss(const struct schedule_piece *piece, double near, double far)
{
    static const double nodes[] = {0, 0.53846931010568309104, 0.90617984593866399280};
    static const double weights[] = {0.56888888888888888889, 0.47862867049936646804,
                                     0.23692688505618908751};
    double middle = near + (far - near) / 2, half = (far - near) / 2, sum = 0;
    for (int i = -2; i <= 2; i++) {
        double node = i < 0 ? -nodes[-i] : nodes[i];
        double rate = cosine_rate(piece, middle + half * node);
        sum += weights[abs(i)] * rate * rate;
    }
    return half * sum;
}

static double integrate_cosine(const struct schedule_piece *piece, double l, double u)
{
    double low = low_end(piece), near = fmin(fabs(l - low), fabs(u - low)), length = u - l;
    int n = (int)ceil(length / (RULE_PART * (piece->end - piece->begin)));
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += gauss(piece, near + length * i / n, near + length * (i + 1) / n);
    return sum;
}

/* The integral of the squared rate from l to u, both in the piece. */
static double integrate(const struct schedule_piece *piece, double l, double u)
{
    if (!(u > l))
        return 0;
    if (piece->form == SCHEDULE_COSINE)
        return integrate_cosine(piece, l, u);
    if (piece->form == SCHEDULE_INVERSE_SQRT)
        return piece->from * piece->from * piece->begin * log1p((u - l) / l);
    double first = rate_in(piece, l), last = rate_in(piece, u);
    return (u - l) * (first * first + first * last + last * last) / 3;
}

double phema_schedule_mean_square(const struct phema_schedule *schedule, double a, double b)
{
    const struct schedule_piece *first = &schedule->pieces[0];
    const struct schedule_piece *last = &schedule->pieces[schedule->n - 1];
    double sum = fmax(fmin(b, first->begin) - a, 0) * first->from * first->from +
                 fmax(b - fmax(a, last->end), 0) * last->to * last->to;
    for (size_t i = find_piece(schedule, a); i < schedule->n && schedule->pieces[i].begin < b;
         i++) {
        const struct schedule_piece *piece = &schedule->pieces[i];
        sum += integrate(piece, fmax(a, piece->begin), fmin(b, piece->end));
    }
    return sum / (b - a);
}

/* ---- Logs ---- */

#define MAX_FILE    ((size_t)64 << 20)
#define MAX_LINE    ((size_t)64 << 10) /* a record of a trainer's log */
#define MAX_POINTS  ((size_t)1 << 20)
#define MAX_COLUMNS ((size_t)256)

struct reader {
    struct phema_schedule *schedule;
    size_t n_points;
    double step, rate, highest;                 /* step and rate of the last point */
    size_t step_column, rate_column, n_columns; /* n_columns 0: no line yet */
};

static enum phema_status add_point(struct reader *reader, double step, double rate,
                                   struct phema_error *err)
{
    struct phema_name_buffer found, before;
    if (!(step >= 0 && step < 0x1p53))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a step from 0 to 2^53, found %s",
                          phema_number_format(&found, step));
    if (!(rate >= 0 && rate <= 1e100))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a rate from 0 to 1e100, found %s",
                          phema_number_format(&found, rate));
    if (reader->n_points && !(step > reader->step))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a step after %s, found %s",
                          phema_number_format(&before, reader->step),
                          phema_number_format(&found, step));
    if (reader->n_points == MAX_POINTS)
        return phema_fail(err, PHEMA_ERR_FILE, "has more than %zu steps; keep some of them",
                          MAX_POINTS);
    bool is_first = reader->n_points++ == 0;
    const struct schedule_piece piece = {is_first ? step : reader->step, step,
                                         is_first ? rate : reader->rate, rate, SCHEDULE_LINEAR};
    reader->step = step;
    reader->rate = rate;
    reader->highest = fmax(reader->highest, rate);
    return add_piece(reader->schedule, &piece, err);
}

/* ---- JSON lines ---- */

static enum phema_status read_record(struct reader *reader, const struct phema_json *record,
                                     struct phema_error *err)
{
    const struct phema_json *rate = phema_json_get(record, "lr");
    double values[2];
    if (phema_json_type(record) != PHEMA_JSON_OBJECT)
        return phema_fail(err, PHEMA_ERR_FILE, "expected an object with step and lr");
    if (!rate)
        rate = phema_json_get(record, "learning_rate");
    if (!rate) /* of another kind, such as an evaluation */
        return PHEMA_OK;
    if (!phema_json_number(&values[0], phema_json_get(record, "step")) ||
        !phema_json_number(&values[1], rate))
        return phema_fail(err, PHEMA_ERR_FILE, "expected numbers as step and lr");
    return add_point(reader, values[0], values[1], err);
}

static enum phema_status read_json_line(struct reader *reader, struct phema_span line,
                                        struct phema_error *err)
{
    struct phema_json *record = NULL;
    enum phema_status status = phema_json_parse(&record, line, err);
    if (!status)
        status = read_record(reader, record, err);
    phema_json_free(record);
    return status;
}

/* ---- CSV ---- */

/* The first cell of *rest, without blanks and quotes; *rest begins after its comma. */
static struct phema_span next_cell(struct phema_span *rest)
{
    const uint8_t *comma = memchr(rest->data, ',', rest->size);
    size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
    struct phema_span cell = phema_span_trim((struct phema_span){rest->data, size});
    size_t used = comma ? size + 1 : size;
    *rest = (struct phema_span){rest->data + used, rest->size - used};
    if (cell.size >= 2 && cell.data[0] == '"' && cell.data[cell.size - 1] == '"')
        cell = phema_span_trim((struct phema_span){cell.data + 1, cell.size - 2});
    return cell;
}

static size_t count_cells(struct phema_span line)
{
    size_t n = 1;
    for (size_t i = 0; i < line.size; i++)
        n += line.data[i] == ',';
    return n;
}

/* *is_header: the line names columns. Without names there are two, step and rate. */
static enum phema_status read_header(struct reader *reader, bool *is_header, struct phema_span line,
                                     struct phema_error *err)
{
    size_t n = count_cells(line);
    if (n > MAX_COLUMNS)
        return phema_fail(err, PHEMA_ERR_FILE, "has more than %zu columns", MAX_COLUMNS);
    reader->step_column = reader->rate_column = SIZE_MAX;
    struct phema_span rest = line;
    for (size_t i = 0; i < n; i++) {
        struct phema_span cell = next_cell(&rest);
        if (phema_bytes_are(cell.data, cell.size, "step"))
            reader->step_column = i;
        if (phema_bytes_are(cell.data, cell.size, "lr") ||
            phema_bytes_are(cell.data, cell.size, "learning_rate"))
            reader->rate_column = i;
    }
    reader->n_columns = n;
    *is_header = reader->step_column != SIZE_MAX && reader->rate_column != SIZE_MAX;
    if (*is_header)
        return PHEMA_OK;
    if (n != 2)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a step, a comma and its rate, or a header with the names step "
                          "and lr");
    reader->step_column = 0;
    reader->rate_column = 1;
    return PHEMA_OK;
}

static enum phema_status read_row(struct reader *reader, struct phema_span line,
                                  struct phema_error *err)
{
    size_t n = count_cells(line);
    if (n != reader->n_columns)
        return phema_fail(err, PHEMA_ERR_FILE, "expected %zu columns, found %zu", reader->n_columns,
                          n);
    struct phema_span rest = line, step = {0}, rate = {0};
    for (size_t i = 0; i < n; i++) {
        struct phema_span cell = next_cell(&rest);
        step = i == reader->step_column ? cell : step;
        rate = i == reader->rate_column ? cell : rate;
    }
    if (rate.size == 0)
        return PHEMA_OK;
    double values[2];
    if (!phema_decimal_parse(&values[0], step) || !phema_decimal_parse(&values[1], rate))
        return phema_fail(err, PHEMA_ERR_FILE, "expected a number as step and as rate");
    return add_point(reader, values[0], values[1], err);
}

static enum phema_status read_csv_line(struct reader *reader, struct phema_span line,
                                       struct phema_error *err)
{
    bool is_header = false;
    enum phema_status status = PHEMA_OK;
    if (!reader->n_columns)
        status = read_header(reader, &is_header, line, err);
    return status || is_header ? status : read_row(reader, line, err);
}

/* ---- Lines ---- */

static enum phema_status read_line(struct reader *reader, struct phema_span line,
                                   struct phema_error *err)
{
    if (line.size > MAX_LINE)
        return phema_fail(err, PHEMA_ERR_FILE, "is longer than %zu bytes", MAX_LINE);
    line = phema_span_trim(line);
    if (line.size && line.data[0] == '{')
        return read_json_line(reader, line, err);
    const uint8_t *comment = line.size ? memchr(line.data, '#', line.size) : NULL;
    if (comment)
        line = phema_span_trim((struct phema_span){line.data, (size_t)(comment - line.data)});
    return line.size ? read_csv_line(reader, line, err) : PHEMA_OK;
}

static enum phema_status read_lines(struct reader *reader, struct phema_span text,
                                    struct phema_error *err)
{
    if (text.size > MAX_FILE)
        return phema_fail(err, PHEMA_ERR_FILE, "is longer than 64 MiB");
    for (size_t number = 1; text.size; number++) {
        enum phema_status status = read_line(reader, phema_span_split(&text, '\n'), err);
        if (status)
            return phema_fail_in(err, status, "line %zu", number);
    }
    if (!reader->n_points)
        return phema_fail(err, PHEMA_ERR_FILE, "has no steps with a rate");
    return reader->highest > 0
               ? PHEMA_OK
               : phema_fail(err, PHEMA_ERR_FILE, "has no rate above 0: nothing would be learned");
}

static enum phema_status read_log(struct phema_schedule *schedule, const char *path,
                                  struct phema_error *err)
{
    struct phema_file *file = NULL;
    struct reader reader = {.schedule = schedule};
    enum phema_status status = phema_file_open(&file, path, err);
    if (!status)
        status = read_lines(&reader, phema_file_span(file), err);
    phema_file_close(file);
    return status ? phema_fail_in(err, status, "%s", path) : PHEMA_OK;
}

/* ---- Texts ---- */

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
    while (kind < N_KINDS &&
           !(strlen(kinds[kind].name) == size && strncmp(text, kinds[kind].name, size) == 0))
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
    return add_piece(schedule, &piece, err);
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
    status = add_piece(schedule, &first, err);
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
                     phema_name_escape(&shown, text, strlen(text)));
    return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_SCHEDULE, near);
}

PHEMA_FALLIBLE phema_schedule_parse(struct phema_schedule **out, const char *text, double steps,
                                    struct phema_error *err)
{
    struct phema_schedule *schedule = calloc(1, sizeof(*schedule));
    if (!schedule)
        return phema_fail_memory(err);
    enum phema_status status = phema_schedule_is_spec(text) ? parse_spec(schedule, text, steps, err)
                                                            : read_log(schedule, text, err);
    if (status == PHEMA_ERR_FILE && !strpbrk(text, "./") && access(text, F_OK))
        status = fail_kind(text, err);
    if (status)
        phema_schedule_free(schedule);
    else
        *out = schedule;
    return status;
}
