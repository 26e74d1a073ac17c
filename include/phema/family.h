/* family.h - profiles that differ by their end alone, and integrals of products of two profiles.
 * (N1), (N2): F(t; T) is the weight of an average that ends at T on the parameters before t.
 * Averages of one family differ by their end alone: F(t; T) = F(t; u) F(u; T) for t <= u <= T.
 * So integrals are computed for u, the end of an interval, and scaled by the decay F(u; T) later.
 */
#ifndef PHEMA_FAMILY_H
#define PHEMA_FAMILY_H

#include "phema/profile.h"

#include "phema/quad.h"

enum phema_family_form {
    PHEMA_FAMILY_POWER,       /* F = ((t - origin) / (T - origin))^power, 0 before the origin */
    PHEMA_FAMILY_EXPONENTIAL, /* F = e^(-rate (T - t)) */
    PHEMA_FAMILY_RAMPED,      /* a power up to the turn, exponential from there */
    PHEMA_FAMILY_COSINE,      /* F = sin^2(pi/2 (t - origin) / (end - origin)), normalised at T */
    PHEMA_FAMILY_RAW,         /* F = 0: all weight is at T; any other form until its reset */
    PHEMA_FAMILY_TABLE        /* step by step only */
};

struct phema_family {
    enum phema_family_form form;
    phema_quad power;                /* power, ramped */
    phema_quad origin;               /* power, ramped, cosine, table: of its clock */
    phema_quad end;                  /* cosine */
    phema_quad rate;                 /* exponential, ramped */
    phema_quad turn;                 /* ramped: rate turn = power; on its clock */
    phema_quad ramp;                 /* ramped: of the profile */
    phema_quad step;                 /* how wide a peak is: 1, or the length of a raw profile */
    uint64_t every;                  /* power: update_every, at least 1 */
    phema_quad reset;                /* all forms: F = 0 before; 0: never */
    const struct phema_betas *betas; /* table: borrowed */
    bool is_snapshots;               /* some snapshot is of this family */
    size_t last_time;                /* index of the last end of an average of this family */
};

/* The profile must be valid: its numbers are not checked here (solver/profile_set.c checks
 * them). */
struct phema_family phema_family_of(const struct phema_profile *profile);
bool phema_family_equals(const struct phema_family *a, const struct phema_family *b);

/* Finds the times after 0 at which the form of the family changes; returns how many. */
#define PHEMA_FAMILY_MAX_BREAKS 2
size_t phema_family_breaks(const struct phema_family *family,
                           phema_quad found[PHEMA_FAMILY_MAX_BREAKS]);

/* F(from; to), from <= to. Not for tables. */
phema_quad phema_family_decay(const struct phema_family *family, phema_quad from, phema_quad to);

/* log of the product of Gamma(j + 1 + 1/U) / Gamma(j + 1 + 2/U): differences of it are the logs of
 * products of (1 + j U) / (2 + j U), the ratio in beta at step c = 1 + j U. t >= 1. */
phema_quad phema_log_updates(uint64_t every, phema_quad t);

/* A Gauss-Legendre rule on [-1, 1]; all zero at first. The first integral that needs the rule
 * computes it, which takes half a millisecond. Most forms need no quadrature. */
#define PHEMA_GAUSS_POINTS 24
struct phema_quadrature {
    bool is_found;
    phema_quad nodes[PHEMA_GAUSS_POINTS], weights[PHEMA_GAUSS_POINTS];
};

/* A family within an interval (l, u] that contains none of its breaks, normalised at u. */
struct phema_local {
    enum phema_family_form form;
    bool is_zero; /* F = p = 0 in the interval (raw: p is a peak at u) */
    phema_quad power, rate;
    phema_quad from, to; /* of the interval, counted from the origin */
    phema_quad span;     /* cosine: of the whole profile */
    phema_quad length;   /* of the interval */
    phema_quad step;     /* of the family */
    phema_quad decay;    /* F(l; u) */
};
/* decay: F(l; u) */
struct phema_local phema_family_local(const struct phema_family *family, phema_quad l, phema_quad u,
                                      phema_quad decay);

/* Integrals over the interval (docs/numerics.md, section 4); p is the density, dF/dt. The density
 * of a raw profile is one step wide. A density that begins like a square root is constant
 * within the first unit. */
phema_quad phema_local_single(const struct phema_local *a, struct phema_quadrature *rule);
phema_quad phema_local_both(const struct phema_local *a, const struct phema_local *b,
                            struct phema_quadrature *rule);
phema_quad phema_local_densities(const struct phema_local *a, const struct phema_local *b,
                                 struct phema_quadrature *rule);

/* 1F1(1; a+1; -x) = a integral_0^1 s^(a-1) e^(-x (1-s)) ds (N16, DLMF 13.4.1); a > 0, x >= 0 */
phema_quad phema_phi(phema_quad a, phema_quad x);

#endif
