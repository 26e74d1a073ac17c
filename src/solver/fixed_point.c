// SPDX-License-Identifier: Apache-2.0
/* fixed_point.c - 128-bit fixed-point dot products. Relies on 64 x 64 -> 128 bit multiplication
 * being one instruction and on right shifts of negative integers keeping the sign, as gcc and clang
 * define them. */
#include "fixed_point.h"

/* A number as high 2^64 + low with both signed: each product is one instruction. */
struct halves {
    int64_t high, low;
};

static inline struct halves halves_of(phema_fixed x)
{
    int64_t low = (int64_t)(uint64_t)x;
    return (struct halves){(int64_t)(x >> 64) - (low >> 63), low};
}

/* High parts in units of 2^-124, and all the rest in units of 2^-188: its upper and lower halves
 * are summed separately, so that neither can overflow. */
phema_quad phema_fixed_dot(const phema_fixed *a, const phema_fixed *b, size_t n)
{
    phema_fixed high = 0, upper = 0;
    phema_ufixed lower = 0;
    for (size_t i = 0; i < n; i++) {
        struct halves x = halves_of(a[i]), y = halves_of(b[i]);
        high += (phema_fixed)x.high * y.high;
        phema_fixed rest = (phema_fixed)x.high * y.low + (phema_fixed)y.high * x.low +
                           ((phema_fixed)x.low * y.low >> 64);
        upper += (int64_t)(rest >> 64);
        lower += (uint64_t)rest;
    }
    return phema_quad_shifted((phema_quad)(high + upper), -124) +
           phema_quad_shifted((phema_quad)lower, -188);
}

phema_quad phema_fixed_dot_whole(const phema_fixed *a, const int64_t *b, size_t n)
{
    phema_fixed high = 0, low = 0;
    for (size_t i = 0; i < n; i++) {
        struct halves x = halves_of(a[i]);
        high += (phema_fixed)x.high * b[i];
        low += (phema_fixed)x.low * b[i];
    }
    return phema_quad_shifted((phema_quad)high, -62) + phema_quad_shifted((phema_quad)low, -126);
}

unsigned phema_fixed_headroom(size_t n)
{
    unsigned headroom = 0;
    while (headroom < 63 && (size_t)1 << headroom < n)
        headroom++;
    return headroom;
}

phema_quad phema_quad_largest(const phema_quad *x, size_t n)
{
    phema_quad largest = 0;
    for (size_t i = 0; i < n; i++) {
        phema_quad size = phema_quad_abs(x[i]);
        if (size > largest)
            largest = size;
    }
    return largest;
}

phema_quad phema_fixed_vector(phema_fixed *fixed, const phema_quad *x, size_t n)
{
    int exponent = 0; /* no entry is above 2^exponent */
    (void)frexpl((long double)phema_quad_largest(x, n), &exponent);
    phema_quad unit = (phema_quad)ldexpl(1, exponent + 1 + (int)phema_fixed_headroom(n));
    for (size_t i = 0; i < n; i++)
        fixed[i] = phema_fixed_from_quad(x[i] / unit);
    return unit;
}
