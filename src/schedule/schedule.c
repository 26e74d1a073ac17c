// SPDX-License-Identifier: Apache-2.0
/* schedule.c - learning rates: the rate at a step, and integrals of its square, piece by piece. */
#include "schedule_pieces.h"

#include <math.h>
#include <stdlib.h>

#include "phema/array.h"

/* Of a cosine, that one Gauss rule is exact for: 0.4 radians of its square, to 1e-17. */
#define RULE_PART (1.0 / 16)

PHEMA_FALLIBLE schedule_add_piece(struct phema_schedule *schedule,
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
    enum phema_status status = schedule_add_piece(schedule, &before, err);
    if (!status)
        status = schedule_add_piece(schedule, &after, err);
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
