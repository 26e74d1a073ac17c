// SPDX-License-Identifier: Apache-2.0
/* dtype.c - the table of element types. */
#include "phema/dtype.h"

#include <math.h>
#include <string.h>

static const struct dtype_facts {
    const char *name;
    unsigned bits;
    bool is_float;
    unsigned mantissa_bits;
} facts[PHEMA_N_DTYPES] = {
    [PHEMA_BOOL] = {"BOOL", 8, false, 0},
    [PHEMA_U8] = {"U8", 8, false, 0},
    [PHEMA_I8] = {"I8", 8, false, 0},
    [PHEMA_U16] = {"U16", 16, false, 0},
    [PHEMA_I16] = {"I16", 16, false, 0},
    [PHEMA_U32] = {"U32", 32, false, 0},
    [PHEMA_I32] = {"I32", 32, false, 0},
    [PHEMA_U64] = {"U64", 64, false, 0},
    [PHEMA_I64] = {"I64", 64, false, 0},
    [PHEMA_F16] = {"F16", 16, true, 10},
    [PHEMA_BF16] = {"BF16", 16, true, 7},
    [PHEMA_F32] = {"F32", 32, true, 23},
    [PHEMA_F64] = {"F64", 64, true, 52},
    [PHEMA_C64] = {"C64", 64, false, 0},
    [PHEMA_C128] = {"C128", 128, false, 0},
    [PHEMA_F8_E4M3] = {"F8_E4M3", 8, true, 3},
    [PHEMA_F8_E5M2] = {"F8_E5M2", 8, true, 2},
    [PHEMA_F8_E8M0] = {"F8_E8M0", 8, true, 0},
    [PHEMA_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8, true, 3},
    [PHEMA_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8, true, 2},
    [PHEMA_F6_E2M3] = {"F6_E2M3", 6, true, 3},
    [PHEMA_F6_E3M2] = {"F6_E3M2", 6, true, 2},
    [PHEMA_F4] = {"F4", 4, true, 1},
};

const char *phema_dtype_name(enum phema_dtype dtype)
{
    return facts[dtype].name;
}

unsigned phema_dtype_bits(enum phema_dtype dtype)
{
    return facts[dtype].bits;
}

uint64_t phema_dtype_bytes(enum phema_dtype dtype, uint64_t n_elems)
{
    uint64_t bits = phema_dtype_bits(dtype); /* groups of 8 elements are whole bytes */
    return n_elems / 8 * bits + n_elems % 8 * bits / 8;
}

bool phema_dtype_is_float(enum phema_dtype dtype)
{
    return facts[dtype].is_float;
}

unsigned phema_dtype_mantissa_bits(enum phema_dtype dtype)
{
    return facts[dtype].mantissa_bits;
}

/* Of all elements together: sum of ulp^2 / 12 over sum of x^2, where mantissas x in [1, 2) are
 * logarithmically uniform: 2^-2p / 12 / (3 / (2 ln 2)), and its root is 2^-p sqrt(ln 2 / 18). */
double phema_dtype_rounding(enum phema_dtype dtype)
{
    if (!facts[dtype].is_float)
        return 0;
    return ldexp(0.19623, -(int)facts[dtype].mantissa_bits);
}

bool phema_dtype_from_name(enum phema_dtype *out, const char *name, size_t name_size)
{
    for (int i = 0; i < PHEMA_N_DTYPES; i++) {
        if (strlen(facts[i].name) == name_size && memcmp(facts[i].name, name, name_size) == 0) {
            *out = (enum phema_dtype)i;
            return true;
        }
    }
    return false;
}
