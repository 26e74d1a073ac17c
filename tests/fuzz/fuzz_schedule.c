// SPDX-License-Identifier: Apache-2.0
/* fuzz_schedule.c - The first line as the SPEC of a learning-rate schedule, or all bytes as its
 * file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/schedule.h"

#define END 1000.0

static void check_rates(const struct phema_schedule *schedule)
{
    static const double steps[] = {-1, 0, 0.5, 1, 17, 250, 999.5, 1000, 1e6, 1e15};
    double before = -2;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        double rate = phema_schedule_rate(schedule, steps[i]);
        double square = phema_schedule_mean_square(schedule, before, steps[i]);
        fuzz_require(rate >= 0 && isfinite(rate), "rates are numbers from 0 on");
        fuzz_require(square >= 0 && isfinite(square), "so are their squares");
        before = steps[i];
    }
}

static void check(const char *text, const char *path)
{
    struct phema_schedule *schedule = NULL;
    struct phema_error err = {0};
    if (phema_schedule_parse(&schedule, text, END, &err)) {
        fuzz_require(!schedule, "outputs change only on success");
        fuzz_require(err.message[0] != '\0' && !strchr(err.message, '\n'), "one line says why");
        if (path)
            fuzz_require_message(&err, path);
        return;
    }
    check_rates(schedule);
    phema_schedule_free(schedule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t line = end ? (size_t)(end - data) : size;
    char *text = calloc(line + 1, 1);
    if (!text)
        return 0;
    if (line)
        memcpy(text, data, line);
    if (phema_schedule_is_spec(text)) {
        check(text, NULL);
    } else {
        const char *path = fuzz_store("schedule", data, size);
        check(path, path);
    }
    free(text);
    return 0;
}
