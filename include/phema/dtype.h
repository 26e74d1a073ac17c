/* dtype.h - the element types of checkpoints, with the names safetensors gives them.
 * C128 exists in PyTorch files only and cannot be written to safetensors. */
#ifndef PHEMA_DTYPE_H
#define PHEMA_DTYPE_H

#include "phema/span.h"

enum phema_dtype {
    PHEMA_BOOL,
    PHEMA_U8,
    PHEMA_I8,
    PHEMA_U16,
    PHEMA_I16,
    PHEMA_U32,
    PHEMA_I32,
    PHEMA_U64,
    PHEMA_I64,
    PHEMA_F16,
    PHEMA_BF16,
    PHEMA_F32,
    PHEMA_F64,
    PHEMA_C64,
    PHEMA_C128,
    PHEMA_F8_E4M3,
    PHEMA_F8_E5M2,
    PHEMA_F8_E8M0,
    PHEMA_F8_E4M3FNUZ,
    PHEMA_F8_E5M2FNUZ,
    PHEMA_F6_E2M3,
    PHEMA_F6_E3M2,
    PHEMA_F4,
    PHEMA_N_DTYPES
};

const char *phema_dtype_name(enum phema_dtype dtype); /* "F16" */
unsigned phema_dtype_bits(enum phema_dtype dtype);    /* of one element: 4, 6, 8 ... 128 */
bool phema_dtype_is_float(enum phema_dtype dtype);    /* real and floating: F64 ... F4 */
/* Bytes of so many elements that exist, which cannot overflow; sub-byte ones must fill bytes. */
uint64_t phema_dtype_bytes(enum phema_dtype dtype, uint64_t n_elems);

/* Mantissa bits that are stored: 10 for F16, 23 for F32; 0 for types without a fraction. */
unsigned phema_dtype_mantissa_bits(enum phema_dtype dtype);

/* Root mean square of (rounded - x) / x for x of no particular size: about 0.197 / 2^mantissa bits
 * (1.92e-4 for F16, 1.53e-3 for BF16, 2.4e-8 for F32); 0 for types that are not floating. */
double phema_dtype_rounding(enum phema_dtype dtype);

/* name[0..name_size) as safetensors writes it, exactly; false when there is no such dtype. */
bool phema_dtype_from_name(enum phema_dtype *out, const char *name, size_t name_size);

/* ---- Single elements of the real floating dtypes. Exact; F6 apart, whose packing is not settled.
 * ---- */

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
