// SPDX-License-Identifier: Apache-2.0
/* decay_fit.c - the decay of an average between two checkpoints, by least squares over a sample:
 *   e' - e = (1 - a) (theta - e) + c (theta' - theta) + noise
 * where a is kept of the average e, and c is the sum over the new weight of its place. */
#include "phema/decay_fit.h"

#include <math.h>
#include <string.h>

#include "phema/span.h"

#define LEAST_ELEMENTS ((size_t)64)
#define LEAST_SHARED   16.0 /* elements among which (theta - e)^2 is shared, effectively */

/* Parameters that move on a smooth path make both terms of the equation proportional. */
#define MOST_ALIKE 0.9

/* Of (theta - e)^2 that may be rounding of the files. */
#define MOST_ROUNDING 0.25

/* Two estimates that differ by more standard deviations do not tell the same. */
#define AGREES  3.0
#define REFUTES 5.0

/* So near to a half the raw parameters before are weak instruments for a walk. */
#define NEAR_HALF 0.08

#define WIDEST 0.1 /* spread of an estimate that says something */

#define STRONG 3.5 /* standard deviations of the weakest correlation of instruments, at least */

/* ---- Scales ---- */

/* Sets the weight of each element: all tensors that move count alike, however far they move. Those
 * that do not move get 0. */
static void find_weights(double *weights, const struct phema_decay_rows *rows)
{
    size_t n = rows->n_elems;
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && rows->tensors[end] == rows->tensors[first];)
            end++;
        double sum = 0;
        for (size_t k = 0; k + 1 < rows->n; k++)
            for (size_t i = first; i < end; i++) {
                double moved = rows->raws[k + 1][i] - rows->raws[k][i];
                double apart = rows->raws[k][i] - rows->averages[k][i];
                sum += moved * moved + apart * apart;
            }
        double mean = sum / (double)((rows->n - 1) * (end - first));
        for (size_t i = first; i < end; i++)
            weights[i] = mean > 0 ? 1 / mean : 0;
    }
}

/* ---- One interval ---- */

/* The terms of an element: what they explain, both terms, and instruments in their place. */
struct terms {
    double y, x[2], z[2], weight;
    double rounding; /* variance of the average's at the begin */
    double rounding_raw[2];
};

/* before: a row of the checkpoint before, for the instruments; NULL: the terms themselves */
static struct terms terms_of(const struct phema_decay_rows *rows, const double *weights, size_t k,
                             size_t i, const double *before)
{
    const double *e = rows->averages[k], *theta = rows->raws[k];
    const double *fine = rows->fineness, *fine_raw = rows->fineness + rows->n;
    double unit = rows->spacings[i] * rows->spacings[i] / 12;
    struct terms terms = {
        .y = rows->averages[k + 1][i] - e[i],
        .x = {theta[i] - e[i], rows->raws[k + 1][i] - theta[i]},
        .weight = weights[i],
        .rounding = unit * fine[k] * fine[k],
        .rounding_raw = {unit * fine_raw[k] * fine_raw[k],
                         unit * fine_raw[k + 1] * fine_raw[k + 1]},
    };
    terms.z[0] = before ? before[i] - e[i] : terms.x[0];
    terms.z[1] = before ? rows->raws[k + 2][i] - rows->raws[k - 1][i] : terms.x[1];
    return terms;
}

/* Normal equations (Z'X) b = Z'y. */
struct equations {
    double zx[2][2], zy[2];
    double rounding_zx[2][2], rounding_zy; /* what rounding adds to them; to zy[0] */
    double fourth;                         /* sum of x[0]^4 */
    double xx[3], zz[3];                   /* X'X and Z'Z: first, mixed, second */
};

static void add_terms(struct equations *sums, const struct terms *terms, bool is_instrumented)
{
    double w = terms->weight, begin = terms->rounding_raw[0], end = terms->rounding_raw[1];
    for (size_t r = 0; r < 2; r++) {
        for (size_t c = 0; c < 2; c++)
            sums->zx[r][c] += w * terms->z[r] * terms->x[c];
        sums->zy[r] += w * terms->z[r] * terms->y;
        sums->xx[2 * r] += w * terms->x[r] * terms->x[r];
        sums->zz[2 * r] += w * terms->z[r] * terms->z[r];
    }
    sums->xx[1] += w * terms->x[0] * terms->x[1];
    sums->zz[1] += w * terms->z[0] * terms->z[1];
    double square = w * terms->x[0] * terms->x[0];
    sums->fourth += square * square;
    sums->rounding_zy += w * terms->rounding;
    sums->rounding_zx[0][0] += w * (terms->rounding + (is_instrumented ? 0 : begin));
    if (is_instrumented)
        return;
    sums->rounding_zx[0][1] -= w * begin;
    sums->rounding_zx[1][0] -= w * begin;
    sums->rounding_zx[1][1] += w * (begin + end);
}

/* The inverse of Z'X; false: the terms are alike. share: of the rounding that is taken away */
static bool invert(double out[2][2], const struct equations *sums, double share)
{
    double m[2][2];
    for (unsigned r = 0; r < 2; r++)
        for (unsigned c = 0; c < 2; c++)
            m[r][c] = sums->zx[r][c] - share * sums->rounding_zx[r][c];
    double determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    if (!(fabs(determinant) > (1 - MOST_ALIKE) * fabs(m[0][0] * m[1][1])))
        return false;
    out[0][0] = m[1][1] / determinant;
    out[0][1] = -m[0][1] / determinant;
    out[1][0] = -m[1][0] / determinant;
    out[1][1] = m[0][0] / determinant;
    return true;
}

/* The lesser canonical correlation of the instruments with the terms: their product is the root of a
 * ratio of determinants, the sum of their squares a trace. */
static double weakest_correlation(const struct equations *sums)
{
    const double *x = sums->xx, *z = sums->zz;
    double xx = x[0] * x[2] - x[1] * x[1], zz = z[0] * z[2] - z[1] * z[1];
    double shared = sums->zx[0][0] * sums->zx[1][1] - sums->zx[0][1] * sums->zx[1][0];
    double trace = 0;
    if (!(xx > 0) || !(zz > 0))
        return 0;
    for (size_t r = 0; r < 2; r++)
        for (size_t c = 0; c < 2; c++) {
            const double *row = sums->zx[r], *other = sums->zx[c];
            double both = (x[2] * row[0] * other[0] - x[1] * row[0] * other[1] -
                           x[1] * row[1] * other[0] + x[0] * row[1] * other[1]) /
                          xx;
            trace += both * (r == c ? z[2 - 2 * r] : -z[1]) / zz;
        }
    double apart = trace * trace - 4 * shared * shared / (xx * zz);
    return sqrt(fmax(0, (trace - sqrt(fmax(0, apart))) / 2));
}

static void solve(double b[2], double inverse[2][2], const struct equations *sums, double share)
{
    double first = sums->zy[0] - share * sums->rounding_zy;
    for (unsigned r = 0; r < 2; r++)
        b[r] = inverse[r][0] * first + inverse[r][1] * sums->zy[1];
}

/* Variance of b[0] for errors that differ between elements (White's). */
static double variance(const struct phema_decay_rows *rows, const double *weights, size_t k,
                       const double *before, double inverse[2][2], const double b[2])
{
    double sum = 0;
    for (size_t i = 0; i < rows->n_elems; i++) {
        struct terms terms = terms_of(rows, weights, k, i, before);
        double left = terms.y - b[0] * terms.x[0] - b[1] * terms.x[1];
        double influence =
            terms.weight * (inverse[0][0] * terms.z[0] + inverse[0][1] * terms.z[1]) * left;
        sum += influence * influence;
    }
    return sum;
}

#define NO_ESTIMATE                                                                                \
    {                                                                                              \
        PHEMA_UNKNOWN, PHEMA_UNKNOWN                                                               \
    }
static const struct phema_estimate no_estimate = NO_ESTIMATE;
const struct phema_decay_interval phema_decay_unknown = {
    .kept = NO_ESTIMATE, .place = PHEMA_UNKNOWN, .plain = NO_ESTIMATE, .instrumented = NO_ESTIMATE};

/* place: NULL, or out
 * before: as in terms_of */
static struct phema_estimate estimate(double *place, const struct phema_decay_rows *rows,
                                      const double *weights, size_t k, const double *before)
{
    bool is_instrumented = before != NULL;
    struct equations sums = {.fourth = 0};
    double inverse[2][2], rough[2], b[2];
    for (size_t i = 0; i < rows->n_elems; i++) {
        struct terms terms = terms_of(rows, weights, k, i, before);
        add_terms(&sums, &terms, is_instrumented);
    }
    double square = sums.zx[0][0];
    if (!is_instrumented && (!(square * square > LEAST_SHARED * sums.fourth) ||
                             sums.rounding_zx[0][0] > MOST_ROUNDING * square))
        return no_estimate;
    if ((is_instrumented && !(weakest_correlation(&sums) > STRONG / sqrt((double)rows->n_elems))) ||
        !invert(inverse, &sums, 0))
        return no_estimate;
    solve(rough, inverse, &sums, 0);
    if (!invert(inverse, &sums, 1))
        return no_estimate;
    solve(b, inverse, &sums, 1);
    if (place)
        *place = b[1];
    /* roundings of two checkpoints may be the same: then they cancel, and nothing is to be taken
     * away */
    double spread = sqrt(variance(rows, weights, k, before, inverse, b));
    spread = hypot(spread, b[0] - rough[0]);
    return is_instrumented && !(spread <= WIDEST) ? no_estimate
                                                  : (struct phema_estimate){1 - b[0], spread};
}

/* ---- What an interval tells ---- */

struct distances {
    double moved, moved_raw, apart; /* e' - e, theta' - theta, theta' - e' */
    double rounding;                /* of theta' - e' */
};

static struct distances measure(const struct phema_decay_rows *rows, const double *weights,
                                size_t k)
{
    struct distances out = {.moved = 0};
    const double *e = rows->averages[k], *theta = rows->raws[k];
    const double *later = rows->averages[k + 1], *later_raw = rows->raws[k + 1];
    double fine = rows->fineness[k + 1], fine_raw = rows->fineness[rows->n + k + 1];
    for (size_t i = 0; i < rows->n_elems; i++) {
        double w = weights[i], unit = rows->spacings[i] * rows->spacings[i] / 12;
        out.moved += w * (later[i] - e[i]) * (later[i] - e[i]);
        out.moved_raw += w * (later_raw[i] - theta[i]) * (later_raw[i] - theta[i]);
        out.apart += w * (later_raw[i] - later[i]) * (later_raw[i] - later[i]);
        out.rounding += w * unit * (fine * fine + fine_raw * fine_raw);
    }
    return out;
}

/* The place of the new weight where the average began as the parameters themselves, so that its
 * other term is 0. */
static double place_from_copy(const struct phema_decay_rows *rows, const double *weights, size_t k)
{
    double both = 0, square = 0;
    for (size_t i = 0; i < rows->n_elems; i++) {
        struct terms terms = terms_of(rows, weights, k, i, NULL);
        double rounding = terms.weight * terms.rounding_raw[0];
        both += terms.weight * terms.y * terms.x[1] - rounding;
        square += terms.weight * terms.x[1] * terms.x[1] - 2 * rounding;
    }
    return square > 0 ? both / square : PHEMA_UNKNOWN;
}

static double limit(double kept)
{
    return fmin(fmax(kept, 0), 1);
}

/* What the plain estimate says, if there is no jitter. It makes the estimate too large: what is not
 * kept by it is not kept. */
static void use_plain(struct phema_decay_interval *interval)
{
    const struct phema_estimate *plain = &interval->plain;
    interval->kept = (struct phema_estimate){limit(plain->value), plain->spread};
    bool is_gone = plain->value + plain->spread <= WIDEST;
    interval->state = is_gone && plain->spread <= WIDEST ? PHEMA_DECAY_FITTED : PHEMA_DECAY_UNCLEAR;
}

static void fit_interval(struct phema_decay_interval *out, const struct phema_decay_rows *rows,
                         const double *weights, size_t k)
{
    struct distances distances = measure(rows, weights, k);
    double error = sqrt(distances.rounding / fmax(distances.moved_raw, distances.rounding));
    if (!(distances.moved_raw > 2 * distances.rounding))
        return;
    if (!(distances.apart > 2 * distances.rounding)) {
        out->state = PHEMA_DECAY_RAW;
        out->kept = (struct phema_estimate){0, error};
        return;
    }
    out->plain = estimate(&out->place, rows, weights, k, NULL);
    if (k > 0 && k + 2 < rows->n)
        out->instrumented = estimate(NULL, rows, weights, k, rows->raws[k - 1]);
    if (k > 0 && k + 2 < rows->n && isnan(out->instrumented.value) &&
        fabs(out->plain.value - 0.5) < NEAR_HALF)
        out->instrumented = estimate(NULL, rows, weights, k, rows->averages[k - 1]);
    if (isnan(out->plain.value) && k > 0 && out[-1].state == PHEMA_DECAY_RAW)
        out->place = place_from_copy(rows, weights, k);
    if (isnan(out->plain.value))
        return;
    use_plain(out);
    if (distances.moved > 0)
        return;
    out->state = PHEMA_DECAY_FROZEN;
    out->kept = (struct phema_estimate){1, error};
}

/* Whether the two estimates contradict each other in some interval, or in all together. */
static bool has_jitter(const struct phema_decay_interval *intervals, size_t n, bool *is_compared)
{
    double sum = 0, weights = 0, most = 0;
    for (size_t k = 0; k < n; k++) {
        const struct phema_estimate *plain = &intervals[k].plain;
        const struct phema_estimate *other = &intervals[k].instrumented;
        double apart = plain->value - other->value, spread = hypot(plain->spread, other->spread);
        if (isnan(apart) || !(spread > 0))
            continue;
        *is_compared = true;
        most = fmax(most, fabs(apart) / spread);
        sum += apart / (spread * spread);
        weights += 1 / (spread * spread);
    }
    return most > AGREES || sum > AGREES * sqrt(weights);
}

/* Plain estimates, which are nearer, are believed where others show that there is no jitter. Where
 * there is, only those others count. */
static void believe(struct phema_decay_interval *intervals, size_t n)
{
    bool is_compared = false, jitters = has_jitter(intervals, n, &is_compared);
    for (size_t k = 0; k < n && is_compared; k++) {
        struct phema_decay_interval *interval = &intervals[k];
        const struct phema_estimate *other = &interval->instrumented;
        if (interval->state != PHEMA_DECAY_UNCLEAR && interval->state != PHEMA_DECAY_FITTED)
            continue;
        if (jitters && !isnan(other->value))
            interval->kept = (struct phema_estimate){limit(other->value), other->spread};
        bool is_known = !jitters || !isnan(other->value);
        if (is_known && interval->kept.spread <= WIDEST)
            interval->state = PHEMA_DECAY_FITTED;
    }
}

/* An average looks back: it is nearer to the parameters before than they are to it. */
static struct phema_estimate find_margin(const struct phema_decay_rows *rows, const double *weights)
{
    double difference = 0, both = 0, squares = 0;
    for (size_t i = 0; i < rows->n_elems; i++) {
        double own = 0;
        for (size_t k = 0; k + 1 < rows->n; k++) {
            double back = rows->averages[k + 1][i] - rows->raws[k][i];
            double ahead = rows->raws[k + 1][i] - rows->averages[k][i];
            own += weights[i] * (ahead * ahead - back * back);
            both += weights[i] * (ahead * ahead + back * back);
        }
        difference += own;
        squares += own * own;
    }
    if (!(both > 0))
        return no_estimate;
    return (struct phema_estimate){difference / both, sqrt(squares) / both};
}

struct phema_estimate phema_decay_fit(struct phema_decay_interval *out,
                                      const struct phema_decay_rows *rows, double *scratch)
{
    for (size_t k = 0; k + 1 < rows->n; k++)
        out[k] = phema_decay_unknown;
    if (rows->n < 2 || rows->n_elems < LEAST_ELEMENTS)
        return no_estimate;
    find_weights(scratch, rows);
    for (size_t k = 0; k + 1 < rows->n; k++)
        fit_interval(&out[k], rows, scratch, k);
    believe(out, rows->n - 1);
    return find_margin(rows, scratch);
}

/* ---- Claims ---- */

static int compare(struct phema_estimate kept, double claimed, double factor)
{
    double value = limit(kept.value), least = 1e-12; /* of a decay that rounds to 1 */
    double found = fmax(1 - value, least), said = fmax(1 - claimed, least);
    if (!(fabs(value - claimed) > REFUTES * kept.spread) ||
        !(fmax(found, said) > factor * fmin(found, said)))
        return 0;
    return value < claimed ? 1 : -1;
}

int phema_decay_refutes(const struct phema_decay_interval *interval, double claimed, double factor)
{
    if (isnan(claimed))
        return 0;
    if (interval->state == PHEMA_DECAY_RAW || interval->state == PHEMA_DECAY_FROZEN)
        return compare(interval->kept, claimed, factor);
    int said = compare(interval->plain, claimed, factor);
    if (!isnan(interval->instrumented.value))
        return compare(interval->instrumented, claimed, factor) == said ? said : 0;
    /* jitter explains that more seems to be kept */
    return said > 0 ? compare(interval->plain, claimed, factor * factor) : 0;
}
