// SPDX-License-Identifier: Apache-2.0
/* quadrature.c - Gauss-Legendre where a function is analytic well beyond the interval, tanh-sinh
 * (Takahasi and Mori 1974) where a power begins at its end. */
#include "phema/quadrature.h"

/* Per interval of a Gauss rule: e^8 is a polynomial of degree 47 to 1e-38. */
#define MAX_EXPONENT 8
/* e^-100 is negligible next to 1 in a quad. */
#define NO_EXPONENT 100

#define STEP       ((phema_quad)1 / 28)
#define MAX_STEPS  (28 * 9)
#define NEGLIGIBLE ((phema_quad)1e-37)

static phema_quad half_pi(void)
{
    return phema_quad_from_text("1.57079632679489661923132169163975144");
}

/* P_n and its derivative by the three-term recurrence */
static phema_quad legendre(phema_quad x, phema_quad *derivative)
{
    const int n = PHEMA_GAUSS_POINTS;
    phema_quad before = 1;
    phema_quad value = x;
    for (int k = 2; k <= n; k++) {
        phema_quad next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
    }
    *derivative = n * (before - x * value) / (1 - x * x);
    return value;
}

static void find_rule(struct phema_quadrature *rule)
{
    rule->is_found = true;
    for (int i = 0; i < PHEMA_GAUSS_POINTS; i++) {
        phema_quad x = (phema_quad)cos(3.14159265358979 * (i + 0.75) / (PHEMA_GAUSS_POINTS + 0.5));
        phema_quad derivative = 1;
        for (int round = 0; round < 6; round++)
            x -= legendre(x, &derivative) / derivative;
        (void)legendre(x, &derivative);
        rule->nodes[i] = x;
        rule->weights[i] = 2 / ((1 - x * x) * derivative * derivative);
    }
}

static phema_quad gauss(struct phema_quadrature *rule, phema_integrand *f, const void *context,
                        phema_quad begin, phema_quad end)
{
    if (!rule->is_found)
        find_rule(rule);
    phema_quad half = (end - begin) / 2;
    phema_quad sum = 0;
    for (int i = 0; i < PHEMA_GAUSS_POINTS; i++)
        sum += rule->weights[i] * f(context, begin + half * (1 + rule->nodes[i]));
    return half * sum;
}

/* at = end / (1 + e^-2s), s = pi/2 sinh t: near the lower end as exact as anywhere */
static phema_quad tanh_sinh_term(phema_integrand *f, const void *context, phema_quad end,
                                 phema_quad t)
{
    phema_quad grown = phema_quad_exp(t);
    phema_quad s = half_pi() * (grown - 1 / grown) / 2;
    phema_quad slope = half_pi() * (grown + 1 / grown) / 2;
    phema_quad small = phema_quad_exp(-2 * phema_quad_abs(s));
    phema_quad share = s < 0 ? small / (1 + small) : 1 / (1 + small);
    phema_quad weight = 2 * slope * small / ((1 + small) * (1 + small));
    return weight > 0 && share > 0 ? end * weight * f(context, end * share) : 0;
}

static phema_quad tanh_sinh(phema_integrand *f, const void *context, phema_quad end)
{
    phema_quad sum = tanh_sinh_term(f, context, end, 0);
    for (int sign = -1; sign <= 1; sign += 2) {
        int n_small = 0;
        for (int i = 1; i <= MAX_STEPS && n_small < 3; i++) {
            phema_quad term = tanh_sinh_term(f, context, end, sign * i * STEP);
            sum += term;
            n_small = phema_quad_abs(term) <= NEGLIGIBLE * phema_quad_abs(sum) ? n_small + 1 : 0;
        }
    }
    return sum * STEP;
}

/* A power of (at + from) that is nowhere nearer than the interval is long is analytic in an ellipse
 * of foci at the ends and half-axes adding up to 5.8: 5.8^-48 = 1e-37. */
static phema_quad integrate(struct phema_quadrature *rule, phema_integrand *f, const void *context,
                            phema_quad begin, phema_quad end, phema_quad from, phema_quad rate,
                            phema_quad length, int depth)
{
    if (rate * (length - end) > NO_EXPONENT)
        return 0;
    bool is_short = rate * (end - begin) <= MAX_EXPONENT;
    if (is_short && from + begin >= end - begin)
        return gauss(rule, f, context, begin, end);
    if (is_short && begin == 0 && from == 0)
        return tanh_sinh(f, context, end);
    if (depth == 0)
        return gauss(rule, f, context, begin, end);
    phema_quad middle = begin + (end - begin) / 2;
    return integrate(rule, f, context, begin, middle, from, rate, length, depth - 1) +
           integrate(rule, f, context, middle, end, from, rate, length, depth - 1);
}

phema_quad phema_integrate(struct phema_quadrature *rule, phema_integrand *f, const void *context,
                           phema_quad length, phema_quad from, phema_quad rate)
{
    return integrate(rule, f, context, 0, length, from, rate, length, 60);
}
