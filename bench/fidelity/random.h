/* random.h - random numbers that are the same on every machine. */
#ifndef BENCH_FIDELITY_RANDOM_H
#define BENCH_FIDELITY_RANDOM_H

#include <stdint.h>

/* SplitMix64; the state is any number. */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Uniform in [0, 1). */
static inline double random_unit(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53;
}

/* Mean 0, variance 1, a sum of four uniform numbers. Only averages of many steps are used, and
 * those are very nearly normal. */
static inline double random_normal(uint64_t *state)
{
    uint64_t bits = random_bits(state);
    int64_t sum = (int64_t)(bits & 0xffff) + (int64_t)(bits >> 16 & 0xffff) +
                  (int64_t)(bits >> 32 & 0xffff) + (int64_t)(bits >> 48);
    return (double)(sum - 131070) * (1.7320508075688772 / 65536); /* each has 65536^2 / 12 */
}

#endif
