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
bool phema_dtype_is_float(enum phema_dtype dtype);    /* real floating point: F64 ... F4 */
/* Bytes of n_elems elements, which must exist, so that nothing overflows; sub-byte elements must
 * fill whole bytes. */
uint64_t phema_dtype_bytes(enum phema_dtype dtype, uint64_t n_elems);

/* Of the real numbers in an element, and how many there are: two in a complex one. */
enum phema_dtype phema_dtype_of_parts(enum phema_dtype dtype);
size_t phema_dtype_n_parts(enum phema_dtype dtype);

/* Stored mantissa bits: 10 for F16, 23 for F32; 0 for types without a fraction. */
unsigned phema_dtype_mantissa_bits(enum phema_dtype dtype);

/* Root mean square of (rounded - x) / x for x of any size: about 0.197 / 2^mantissa bits
 * (1.92e-4 for F16, 1.53e-3 for BF16, 2.4e-8 for F32); 0 for types that are not floating. */
double phema_dtype_rounding(enum phema_dtype dtype);

/* name[0..name_size) as safetensors writes it, exactly; false when there is no such dtype. */
bool phema_dtype_from_name(enum phema_dtype *out, const char *name, size_t name_size);

/* ---- Single elements of the real floating dtypes, exactly ----
 * F6 is excluded: its packing is not settled. */

/* The bit layout of numbers with sign, exponent and fraction in at most 16 bits. Magnitudes above
 * max_code are infinity (max_code + 1) where the format has one, NaN otherwise; nan_code is the NaN
 * to write. */
struct phema_float_layout {
    unsigned bits, mantissa_bits;
    int bias;
    uint32_t max_code, nan_code;
    bool has_infinity;
    bool is_unsigned_zero; /* FNUZ: the code of -0 is the only NaN */
    bool is_finite_only;   /* every code is a number */
};
/* Zeros for dtypes without such a layout, such as F8_E8M0. */
extern const struct phema_float_layout phema_float_layouts[PHEMA_N_DTYPES];

/* Element i of data at any address. F4 stores even elements in the low nibbles. */
double phema_element_widen(enum phema_dtype dtype, const uint8_t *data, size_t i);
/* out [n]: the first n elements */
void phema_elements_widen(double *out, enum phema_dtype dtype, const uint8_t *data, size_t n);

/* Distance between neighbouring numbers of the dtype, from the power of two at or below |x| on.
 * Rounding errors are uniform, up to half of it. Below the smallest normal number, and for 0, the
 * distance of subnormal numbers. x is finite. */
double phema_element_spacing(enum phema_dtype dtype, double x);
/* out [n]: those of x [n] */
void phema_element_spacings(double *out, enum phema_dtype dtype, const double *x, size_t n);

#endif
