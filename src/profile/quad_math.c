// SPDX-License-Identifier: Apache-2.0
/* quad_math.c - logarithms, powers and cosines in quad, rounded once to double. Those of libm
 * differ in the last bit between machines, and the bytes of an output would differ with them. */
#include <float.h>
#include <math.h>

#include "spec_internal.h"

#if LDBL_MANT_DIG == 113
typedef long double quad;
#define quad_log(x)    logl(x)
#define quad_pow(x, y) powl(x, y)
#define quad_cos(x)    cosl(x)
#define quad_sqrt(x)   sqrtl(x)
#define quad_acos(x)   acosl(x)
#else
/* glibc's (>= 2.26), declared here since clang's <math.h> hides them. */
__extension__ typedef __float128 quad;
extern quad logf128(quad x);
extern quad powf128(quad x, quad y);
extern quad cosf128(quad x);
extern quad sqrtf128(quad x);
extern quad acosf128(quad x);
#define quad_log(x)    logf128(x)
#define quad_pow(x, y) powf128(x, y)
#define quad_cos(x)    cosf128(x)
#define quad_sqrt(x)   sqrtf128(x)
#define quad_acos(x)   acosf128(x)
#endif

double rounded_half_life(double decay)
{
    return (double)(-quad_log((quad)2) / quad_log((quad)decay));
}

/* A long training has a million of them, and quad takes a microsecond: it is used only if
 * the last bits of libm, of which two may be wrong, could change the result. */
double rounded_one_minus_power(double base, double exponent)
{
    double power = pow(base, -exponent);
    double slack = 2 * DBL_EPSILON * power;
    double low = 1 - (power + slack), high = 1 - (power - slack);
    return low == high ? low : (double)(1 - quad_pow((quad)base, -(quad)exponent));
}

static quad cosine(size_t i, size_t n)
{
    return (1 + quad_cos(quad_acos((quad)-1) * (quad)i / (quad)n)) / 2;
}

static quad minus_sqrt(size_t i, size_t n)
{
    return 1 - quad_sqrt((quad)i / (quad)n);
}

static double step_of(quad (*decay)(size_t i, size_t n), size_t i, size_t n)
{
    quad before = i ? decay(i, n) : 1;
    return (double)(i + 1 < n ? before - decay(i + 1, n) : before);
}

double rounded_cosine_step(size_t i, size_t n)
{
    return step_of(cosine, i, n);
}

double rounded_minus_sqrt_step(size_t i, size_t n)
{
    return step_of(minus_sqrt, i, n);
}
