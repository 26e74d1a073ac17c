// SPDX-License-Identifier: Apache-2.0
/* fixed.c - see fixed.h. Relies on 64 x 64 -> 128 bit multiplication being one instruction and on
 * right shifts of negative integers keeping the sign, as gcc and clang define them. */
#include "fixed.h"

#include <stdint.h>

/* With a = ah 2^64 + al: high parts in units of 2^-124, and the three other products in units of
 * 2^-148, whose sums cannot overflow: 2^(63 + 64 - 40) each. */
phema_quad phema_fixed_dot(const phema_fixed *a, const phema_fixed *b, size_t n)
{
    phema_fixed high = 0;
    phema_fixed low = 0;
    for (size_t i = 0; i < n; i++) {
        phema_fixed a_high = (int64_t)(a[i] >> 64);
        phema_fixed b_high = (int64_t)(b[i] >> 64);
        uint64_t a_low = (uint64_t)a[i];
        uint64_t b_low = (uint64_t)b[i];
        high += a_high * b_high;
        low += (a_high * (phema_fixed)b_low >> 40) + (b_high * (phema_fixed)a_low >> 40) +
               (phema_fixed)((phema_ufixed)a_low * b_low >> 104);
    }
    return (phema_quad)high * (phema_quad)0x1p-124 + (phema_quad)low * (phema_quad)0x1p-148;
}

unsigned phema_fixed_headroom(size_t n)
{
    unsigned headroom = 0;
    while (headroom < 63 && (size_t)1 << headroom < n)
        headroom++;
    return headroom;
}

phema_quad phema_fixed_vector(phema_fixed *fixed, const phema_quad *x, size_t n)
{
    phema_quad largest = 0;
    for (size_t i = 0; i < n; i++) {
        phema_quad size = phema_quad_abs(x[i]);
        if (size > largest)
            largest = size;
    }
    int exponent = 0;
    (void)frexpl((long double)largest, &exponent); /* largest < 2^exponent, or equal by rounding */
    phema_quad unit = (phema_quad)ldexpl(1, exponent + 1 + (int)phema_fixed_headroom(n));
    for (size_t i = 0; i < n; i++)
        fixed[i] = phema_fixed_from_quad(x[i] / unit);
    return unit;
}
