// SPDX-License-Identifier: Apache-2.0
/* operations.c - the operations of operations.inc, each for many threads at once. */
#include <math.h>
#include <string.h>

#include "module.h"
#include "phema/span.h"

#define U16(x) ((uint64_t)(uint16_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))
#define S16(x) ((int64_t)(int16_t)(uint16_t)(x))
#define S32(x) ((int64_t)(int32_t)(uint32_t)(x))
#define S64(x) ((int64_t)(x))
#define F32(x) f32_from_bits(x)
#define F64(x) f64_from_bits(x)
/* Results that are not a number: the bits that CUDA documents for single precision. None are
 * documented for double precision; these are not those of the host, so results that depend on them
 * are found. */
#define NAN32 0x7fffffffu
#define NAN64 0x7fffffffffffffffu

static inline float f32_from_bits(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof(value));
    return value;
}

static inline double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t FROM_F32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return isnan(value) ? NAN32 : bits;
}

static inline uint64_t FROM_F64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return isnan(value) ? NAN64 : bits;
}

#define A a[t]
#define B b[t]
#define C c[t]
#define OP(name, n_sources, result)                                                                \
    static void name(uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c,         \
                     const uint16_t *lanes, size_t n)                                              \
    {                                                                                              \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        for (size_t t = 0; !lanes && t < n; t++)                                                   \
            d[t] = (result);                                                                       \
        for (size_t i = 0; lanes && i < n; i++) {                                                  \
            size_t t = lanes[i];                                                                   \
            d[t] = (result);                                                                       \
        }                                                                                          \
    }
#include "operations.inc"
#undef OP

static const struct {
    const char *name;
    size_t n_sources;
    ptx_compute *compute;
} operations[] = {
#define OP(name, n_sources, result) {#name, n_sources, name},
#include "operations.inc"
};

ptx_compute *ptx_compute_named(const char *mnemonic, size_t *n_sources)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        const char *name = operations[i].name;
        size_t at = 0;
        while (name[at] && (name[at] == mnemonic[at] || (name[at] == '_' && mnemonic[at] == '.')))
            at++;
        if (!name[at] && !mnemonic[at]) {
            *n_sources = operations[i].n_sources;
            return operations[i].compute;
        }
    }
    return NULL;
}
