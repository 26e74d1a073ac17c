// SPDX-License-Identifier: Apache-2.0
/* schedule_log.c - learning rates as a trainer has logged them, as CSV or JSON lines. Between two
 * steps of a log the rate is linear. */
#include <math.h>
#include <string.h>

#include "phema/json.h"
#include "phema/mapped_file.h"
#include "phema/number.h"
#include "schedule_pieces.h"

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
    return schedule_add_piece(reader->schedule, &piece, err);
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

static size_t count_cells(struct phema_span line)
{
    size_t n = 0;
    for (; line.data; n++)
        (void)phema_span_cut_cell(&line);
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
        struct phema_span cell = phema_span_cut_cell(&rest);
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
        struct phema_span cell = phema_span_cut_cell(&rest);
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

PHEMA_FALLIBLE schedule_read_log(struct phema_schedule *schedule, const char *path,
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
