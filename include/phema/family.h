/* family.h - what averages of one kind have in common, and integrals of their profiles.
 * (N1), (N2): F(t; T) is the weight of an average that ends at T on the parameters before t.
 * Averages of one kind differ by their end alone: F(t; T) = F(t; u) F(u; T) for t <= u <= T, so
 * that everything can be told for u, the end of an interval, and scaled by the decay F(u; T) later
 * on. */
#ifndef PHEMA_FAMILY_H
#define PHEMA_FAMILY_H

#include "phema/profile.h"

#include "phema/quad.h"
#include "phema/quadrature.h"

enum phema_family_form {
    PHEMA_FAMILY_POWER,       /* F = ((t - origin) / (T - origin))^power, 0 before the origin */
    PHEMA_FAMILY_EXPONENTIAL, /* F = e^(-rate (T - t)) */
    PHEMA_FAMILY_RAMPED,      /* a power up to the turn, exponential from there */
    PHEMA_FAMILY_COSINE,      /* F = sin^2(pi/2 (t - origin) / (end - origin)), normalised at T */
    PHEMA_FAMILY_RAW,         /* F = 0: all weight is at T */
    PHEMA_FAMILY_TABLE        /* step by step only */
};

struct phema_family {
    enum phema_family_form form;
    phema_quad power;                /* power, ramped */
    phema_quad origin;               /* power, cosine */
    phema_quad end;                  /* cosine */
    phema_quad rate;                 /* exponential, ramped */
    phema_quad turn;                 /* ramped: rate turn = power */
    phema_quad ramp;                 /* ramped: of the profile */
    uint64_t every;                  /* power: update_every, at least 1 */
    const struct phema_betas *betas; /* table: borrowed */
    bool is_snapshots;               /* some snapshot is of this kind */
    size_t last_time;                /* index of the last end of an average of this kind */
};

/* gamma, half_life, ... as they are: check_profile of set.c has been there */
struct phema_family phema_family_of(const struct phema_profile *profile);
bool phema_family_equals(const struct phema_family *a, const struct phema_family *b);

/* It can be followed step by step only. */
bool phema_family_is_stepwise(const struct phema_family *kind);
/* Where its form changes within (0, last): n <= 1 of breaks */
size_t phema_family_breaks(const struct phema_family *kind, phema_quad *found);

/* F(from; to), from <= to. Not for tables. */
phema_quad phema_family_decay(const struct phema_family *kind, phema_quad from, phema_quad to);

/* log of the product of Gamma(j + 1 + 1/U) / Gamma(j + 1 + 2/U): differences of it are the logs of
 * products of (1 + j U) / (2 + j U), the ratio in beta at step c = 1 + j U. t >= 1. */
phema_quad phema_log_updates(uint64_t every, phema_quad t);

/* A kind within an interval (l, u] that holds none of its breaks, normalised at u. */
struct phema_local {
    enum phema_family_form form;
    bool is_zero; /* F = p = 0 in the interval (raw: p is a peak at u) */
    phema_quad power, rate;
    phema_quad from, to; /* of the interval, counted from the origin */
    phema_quad span;     /* cosine: of the whole profile */
    phema_quad length;   /* of the interval */
    phema_quad decay;    /* F(l; u) */
};
struct phema_local phema_family_local(const struct phema_family *kind, phema_quad l, phema_quad u);

/* Integrals over the interval (docs/numerics.md, section 4); p is the density, dF/dt. A raw
 * profile's is one unit of time wide, and one that begins like a square root is even within the
 * first one. */
phema_quad phema_local_single(const struct phema_local *a, struct phema_quadrature *rule);
phema_quad phema_local_both(const struct phema_local *a, const struct phema_local *b,
                            struct phema_quadrature *rule);
phema_quad phema_local_densities(const struct phema_local *a, const struct phema_local *b,
                                 struct phema_quadrature *rule);

/* 1F1(1; a+1; -x) = a integral_0^1 s^(a-1) e^(-x (1-s)) ds (N16, DLMF 13.4.1); a > 0, x >= 0 */
phema_quad phema_phi(phema_quad a, phema_quad x);

#endif
