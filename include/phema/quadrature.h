/* quadrature.h - Gauss-Legendre and tanh-sinh quadrature to quad precision. */
#ifndef PHEMA_QUADRATURE_H
#define PHEMA_QUADRATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "phema/quad.h"

#define PHEMA_GAUSS_POINTS 24

/* Gauss-Legendre on [-1, 1]; all zero at first. The first integral that needs the rule computes it,
 * which takes half a millisecond. Most forms need no quadrature. */
struct phema_quadrature {
    bool is_found;
    phema_quad nodes[PHEMA_GAUSS_POINTS], weights[PHEMA_GAUSS_POINTS];
};

/* at: distance from the lower end, exact however small */
typedef phema_quad phema_integrand(const void *context, phema_quad at);

/* Integral over [0, length] of a function that is analytic there, except for a power of (at + from)
 * at the lower end, and that grows like e^(rate at) at most. */
phema_quad phema_integrate(struct phema_quadrature *rule, phema_integrand *f, const void *context,
                           phema_quad length, phema_quad from, phema_quad rate);

#endif
