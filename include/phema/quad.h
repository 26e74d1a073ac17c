/* quad.h - numbers of 113 mantissa bits and the functions of them that profiles need.
 * __float128 where long double is narrower (x86-64); its functions are glibc's (>= 2.26), declared
 * here since clang's <math.h> hides them. On aarch64 long double is the same format. */
#ifndef PHEMA_QUAD_H
#define PHEMA_QUAD_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#if LDBL_MANT_DIG == 113
typedef long double phema_quad;

#define phema_quad_pow(x, y)         powl(x, y)
#define phema_quad_exp(x)            expl(x)
#define phema_quad_expm1(x)          expm1l(x)
#define phema_quad_log(x)            logl(x)
#define phema_quad_sin(x)            sinl(x)
#define phema_quad_cos(x)            cosl(x)
#define phema_quad_sqrt(x)           sqrtl(x)
#define phema_quad_abs(x)            fabsl(x)
#define phema_quad_lgamma_r(x, sign) lgammal_r(x, sign)
#define phema_quad_from_text(text)   strtold(text, NULL)
#else
__extension__ typedef __float128 phema_quad;

extern phema_quad powf128(phema_quad x, phema_quad y);
extern phema_quad expf128(phema_quad x);
extern phema_quad expm1f128(phema_quad x);
extern phema_quad logf128(phema_quad x);
extern phema_quad sinf128(phema_quad x);
extern phema_quad cosf128(phema_quad x);
extern phema_quad sqrtf128(phema_quad x);
extern phema_quad fabsf128(phema_quad x);
extern phema_quad lgammaf128_r(phema_quad x, int *sign);
extern phema_quad strtof128(const char *text, char **end);

#define phema_quad_pow(x, y)         powf128(x, y)
#define phema_quad_exp(x)            expf128(x)
#define phema_quad_expm1(x)          expm1f128(x)
#define phema_quad_log(x)            logf128(x)
#define phema_quad_sin(x)            sinf128(x)
#define phema_quad_cos(x)            cosf128(x)
#define phema_quad_sqrt(x)           sqrtf128(x)
#define phema_quad_abs(x)            fabsf128(x)
#define phema_quad_lgamma_r(x, sign) lgammaf128_r(x, sign)
#define phema_quad_from_text(text)   strtof128(text, NULL)
#endif

_Static_assert(sizeof(phema_quad) == 16, "a quad is IEEE binary128: 113 mantissa bits");

static inline phema_quad phema_quad_pi(void)
{
    return phema_quad_from_text("3.14159265358979323846264338327950288");
}

#endif
