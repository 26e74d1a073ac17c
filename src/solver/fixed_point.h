/* fixed_point.h - numbers in [-1, 1] as 128-bit integers in units of 2^-126, and their dot
 * products. In a Gram matrix with unit diagonal, and in its Cholesky factor, all entries lie there.
 * Such numbers need no exponents, which cost soft-float most of its time: these dot products are
 * ten times as fast as those of __float128, and as exact (README.md). */
#ifndef SOLVER_FIXED_POINT_H
#define SOLVER_FIXED_POINT_H

#include <stdbool.h>
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

/* ---- Scaled numbers ---- */

/* Quads split into mantissa and exponent, for the n^2 entries of a Gram matrix.
 * Soft-float unpacks, rounds and packs at every step, and tests for infinities, NaNs and denormals.
 * These numbers need none of that: they are faster, and as exact. README.md has the figures. */

/* mantissa 2^exponent. Taken from a quad, |mantissa| is 0 or in [2^125, 2^126); each product may
 * lose a leading bit, so that after ten of them there are still more than in a quad. */
struct phema_scaled {
    phema_fixed mantissa;
    int exponent;
};

#define PHEMA_QUAD_SIGN      ((phema_ufixed)1 << 127)
#define PHEMA_QUAD_ONE       ((phema_ufixed)1 << 112) /* the leading bit, which is not stored */
#define PHEMA_QUAD_EXPONENTS 0x7fff                   /* all ones: not finite */
#define PHEMA_QUAD_BIAS      16383

/* False for infinity and NaN. Denormals, which have lost digits, count as 0. */
static inline bool phema_scaled_from_quad(struct phema_scaled *out, const phema_quad *x)
{
    phema_ufixed bits;
    memcpy(&bits, x, sizeof(bits));
    int exponent = (int)(bits >> 112) & PHEMA_QUAD_EXPONENTS;
    phema_fixed mantissa =
        (phema_fixed)(((bits & (PHEMA_QUAD_ONE - 1)) | PHEMA_QUAD_ONE) << 13); /* [2^125, 2^126) */
    if (exponent == 0)
        mantissa = 0;
    out->mantissa = bits & PHEMA_QUAD_SIGN ? -mantissa : mantissa;
    out->exponent = exponent - PHEMA_QUAD_BIAS - 125;
    return exponent != PHEMA_QUAD_EXPONENTS;
}

/* Relative error 2^-124: the product of the low halves is left out. */
static inline struct phema_scaled phema_scaled_times(struct phema_scaled a, struct phema_scaled b)
{
    phema_fixed a_high = (int64_t)(a.mantissa >> 64);
    phema_fixed b_high = (int64_t)(b.mantissa >> 64);
    uint64_t a_low = (uint64_t)a.mantissa;
    uint64_t b_low = (uint64_t)b.mantissa;
    phema_fixed product = a_high * b_high * 4 + (a_high * (phema_fixed)b_low >> 62) +
                          (b_high * (phema_fixed)a_low >> 62);
    return (struct phema_scaled){product, a.exponent + b.exponent + 126};
}

/* x may be 0 with any number of bits */
static inline phema_fixed phema_shifted_down(phema_fixed x, int bits)
{
    return x && bits < 127 ? x >> bits : 0;
}

/* Error: 2^-124 of the larger of both. */
static inline struct phema_scaled phema_scaled_minus(struct phema_scaled a, struct phema_scaled b)
{
    int apart = a.exponent - b.exponent;
    if (a.mantissa == 0 || (apart < 0 && b.mantissa != 0))
        return (struct phema_scaled){phema_shifted_down(a.mantissa, -apart) - b.mantissa,
                                     b.exponent};
    return (struct phema_scaled){a.mantissa - phema_shifted_down(b.mantissa, apart), a.exponent};
}

/* Rounded to nearest. Below the normal range of a quad the result is 0, above it infinity. */
static inline void phema_quad_from_scaled(phema_quad *out, struct phema_scaled x)
{
    phema_ufixed bits = 0;
    if (x.mantissa) {
        phema_ufixed sign = x.mantissa < 0 ? PHEMA_QUAD_SIGN : 0;
        phema_ufixed size = (phema_ufixed)(x.mantissa < 0 ? -x.mantissa : x.mantissa);
        uint64_t high = (uint64_t)(size >> 64);
        int zeros = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)size);
        size <<= zeros;
        phema_ufixed kept = size >> 15;
        unsigned rest = (unsigned)size & 0x7fff;
        kept += rest > 0x4000 || (rest == 0x4000 && (kept & 1));
        int exponent = x.exponent + 127 - zeros + PHEMA_QUAD_BIAS;
        if (exponent >= PHEMA_QUAD_EXPONENTS)
            bits = sign | (phema_ufixed)PHEMA_QUAD_EXPONENTS << 112;
        else if (exponent > 0) /* kept has the leading bit, which adds 1 to the exponent */
            bits = sign | (kept + ((phema_ufixed)(exponent - 1) << 112));
    }
    memcpy(out, &bits, sizeof(bits));
}

/* In units of 2^-126, clamped to [-2, 2). */
static inline phema_fixed phema_fixed_from_scaled(struct phema_scaled x)
{
    int down = -126 - x.exponent;
    if (down >= 0)
        return phema_shifted_down(x.mantissa, down);
    phema_fixed most = (phema_fixed)(~(phema_ufixed)0 >> 1);
    phema_fixed limit = down > -127 ? most >> -down : 0;
    if (x.mantissa > limit)
        return most;
    return x.mantissa < -limit ? -most : x.mantissa * ((phema_fixed)1 << (limit ? -down : 0));
}

#endif
