/* fixed_point.h - numbers in [-1, 1] as 128-bit integers in units of 2^-126, and their dot
 * products. In a Gram matrix with unit diagonal, and in its Cholesky factor, all entries lie there.
 * Such numbers need no exponents, which cost soft-float most of its time: these dot products are
 * ten times as fast as those of __float128, and as exact (README.md). */
#ifndef SOLVER_FIXED_POINT_H
#define SOLVER_FIXED_POINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "phema/quad.h"

__extension__ typedef __int128 phema_fixed;
__extension__ typedef unsigned __int128 phema_ufixed;

#define PHEMA_FIXED_ONE ((phema_fixed)1 << 126)

/* x 2^exponent, for a finite x and a result that is not too large: 0 where it would be denormal. A
 * quad has 112 bits behind its exponent of 15, and a product takes ten times as long. */
static inline phema_quad phema_quad_shifted(phema_quad x, int exponent)
{
    phema_ufixed bits;
    memcpy(&bits, &x, sizeof(bits));
    int biased = (int)(bits >> 112) & 0x7fff; /* 0: x is 0 or denormal */
    if (biased == 0 || biased + exponent <= 0)
        return 0;
    bits += (phema_ufixed)exponent << 112;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* x in [-1.9, 1.9] */
static inline phema_fixed phema_fixed_from_quad(phema_quad x)
{
    return (phema_fixed)phema_quad_shifted(x, 126);
}

static inline phema_quad phema_quad_from_fixed(phema_fixed x)
{
    return phema_quad_shifted((phema_quad)x, -126);
}

/* Error: a little more than half an ulp, and at least 2^-115. */
static inline double phema_double_from_fixed(phema_fixed x)
{
    return (double)(int64_t)(x >> 64) * 0x1p-62 + (double)(int64_t)((uint64_t)x >> 1) * 0x1p-125;
}

/* Sum of a_i b_i, to n 2^-187 and a quad; no partial sum may leave [-7, 7]. */
phema_quad phema_fixed_dot(const phema_fixed *a, const phema_fixed *b, size_t n);

/* The same where b are whole numbers and sum |b_i| <= 2^62: half as many multiplications. */
phema_quad phema_fixed_dot_whole(const phema_fixed *a, const int64_t *b, size_t n);

/* The largest |x_i|, 0 for none */
phema_quad phema_quad_largest(const phema_quad *x, size_t n);

/* Any vector as fixed = x / unit with sum |fixed| <= 1, so that its dot product with a row of
 * numbers in [-1, 1] stays in range. Returns unit, a power of two; n > 0, x finite. */
phema_quad phema_fixed_vector(phema_fixed *fixed, const phema_quad *x, size_t n);

/* The smallest h with 2^h >= n. */
unsigned phema_fixed_headroom(size_t n);

#endif
