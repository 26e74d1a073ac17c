/* element.h - single elements of the real floating dtypes: what their bits mean, and how far apart
 * the numbers lie. Exact; F6 apart, whose packing is not settled. */
#ifndef PHEMA_ELEMENT_H
#define PHEMA_ELEMENT_H

#include "phema/dtype.h"

/* How numbers with sign, exponent and fraction lie in at most 16 bits. Codes of magnitudes above
 * max_code are infinity (max_code + 1) where the format has one, NaN otherwise; nan_code is the one
 * that is written. */
struct phema_float_layout {
    unsigned bits, mantissa_bits;
    int bias;
    uint32_t max_code, nan_code;
    bool has_infinity;
    bool is_unsigned_zero; /* FNUZ: the code of -0 is the only NaN */
    bool is_finite_only;   /* every code is a number */
};
/* Zeros for dtypes that have no such layout, F8_E8M0 among them. */
extern const struct phema_float_layout phema_float_layouts[PHEMA_N_DTYPES];

/* Element i of data at any address; F4 has the even elements in the low nibbles. */
double phema_element_widen(enum phema_dtype dtype, const uint8_t *data, size_t i);

/* What lies between the dtype's numbers from the power of two at or below |x| on: rounding to them
 * is off by up to half of it, uniformly. Below its smallest normal number, and for 0, that of the
 * subnormal ones. x is finite. */
double phema_element_spacing(enum phema_dtype dtype, double x);

#endif
