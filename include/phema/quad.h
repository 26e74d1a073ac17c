/* quad.h - numbers of 113 mantissa bits and the functions of them that profiles need.
 * __float128 where long double is narrower (x86-64); its functions are glibc's (>= 2.26), declared
 * here since clang's <math.h> hides them. musl has none: GCC's libquadmath has the same, to the bit.
 * On aarch64 long double is the same format. */
#ifndef PHEMA_QUAD_H
#define PHEMA_QUAD_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#if LDBL_MANT_DIG == 113
#ifndef __GLIBC__
#error "musl's functions of long double have the precision of double"
#endif
typedef long double phema_quad;
#define PHEMA_QUAD(name)             name##l
#define phema_quad_lgamma_r(x, sign) lgammal_r(x, sign)
#define phema_quad_from_text(text)   strtold(text, NULL)
#else
__extension__ typedef __float128 phema_quad;
#ifdef __GLIBC__
#define PHEMA_QUAD(name)             name##f128
#define phema_quad_lgamma_r(x, sign) lgammaf128_r(x, sign)
#define phema_quad_from_text(text)   strtof128(text, NULL)
extern phema_quad lgammaf128_r(phema_quad x, int *sign);
extern phema_quad strtof128(const char *text, char **end);
#else
#define PHEMA_QUAD(name)             name##q
#define phema_quad_lgamma_r(x, sign) ((void)(sign), lgammaq(x))
#define phema_quad_from_text(text)   strtoflt128(text, NULL)
extern phema_quad fmaq(phema_quad x, phema_quad y, phema_quad z);
extern phema_quad lgammaq(phema_quad x);
extern phema_quad strtoflt128(const char *text, char **end);
#endif
extern phema_quad PHEMA_QUAD(pow)(phema_quad x, phema_quad y);
extern phema_quad PHEMA_QUAD(exp)(phema_quad x);
extern phema_quad PHEMA_QUAD(expm1)(phema_quad x);
extern phema_quad PHEMA_QUAD(log)(phema_quad x);
extern phema_quad PHEMA_QUAD(sin)(phema_quad x);
extern phema_quad PHEMA_QUAD(cos)(phema_quad x);
extern phema_quad PHEMA_QUAD(sqrt)(phema_quad x);
extern phema_quad PHEMA_QUAD(fabs)(phema_quad x);
#endif

#define phema_quad_pow(x, y) PHEMA_QUAD(pow)(x, y)
#define phema_quad_exp(x)    PHEMA_QUAD(exp)(x)
#define phema_quad_expm1(x)  PHEMA_QUAD(expm1)(x)
#define phema_quad_log(x)    PHEMA_QUAD(log)(x)
#define phema_quad_sin(x)    PHEMA_QUAD(sin)(x)
#define phema_quad_cos(x)    PHEMA_QUAD(cos)(x)
#define phema_quad_abs(x)    PHEMA_QUAD(fabs)(x)

_Static_assert(sizeof(phema_quad) == 16, "a quad is IEEE binary128: 113 mantissa bits");

static inline phema_quad phema_quad_pi(void)
{
    return phema_quad_from_text("3.14159265358979323846264338327950288");
}

static inline phema_quad phema_quad_sqrt(phema_quad x)
{
    phema_quad root = PHEMA_QUAD(sqrt)(x);
#ifndef __GLIBC__ /* libquadmath's may be off in the last bit; the exact remainder corrects that */
    if (root > 0 && root < root + root)
        root += fmaq(-root, root, x) / (2 * root);
#endif
    return root;
}

#endif
