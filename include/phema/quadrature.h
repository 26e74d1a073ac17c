/* quadrature.h - integrals of functions that have no closed form, to the digits of a quad. */
#ifndef PHEMA_QUADRATURE_H
#define PHEMA_QUADRATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "phema/quad.h"

#define PHEMA_GAUSS_POINTS 24

/* Gauss-Legendre on [-1, 1]; all zero at first: the rule is found, which takes half a millisecond,
 * when an integral needs it, and most forms have none that does. */
struct phema_quadrature {
    bool is_found;
    phema_quad nodes[PHEMA_GAUSS_POINTS], weights[PHEMA_GAUSS_POINTS];
};

/* at: distance from the lower end, exact however small */
typedef phema_quad phema_integrand(const void *context, phema_quad at);

/* Integral over [0, length] of a function that is analytic there but perhaps for a power of
 * (at + from) at the lower end, and that grows like e^(rate at) at most. */
phema_quad phema_integrate(struct phema_quadrature *rule, phema_integrand *f, const void *context,
                           phema_quad length, phema_quad from, phema_quad rate);

#endif
