// SPDX-License-Identifier: Apache-2.0
/* evaluate.c - a profile as a curve, to be drawn: what of it lies before each of some times. */
#include "phema/family.h"

static double share_between(double at, double begin, double end, double before, double after)
{
    return before + (after - before) * ((at - begin) / (end - begin));
}

/* Touched at steps 1, 1 + U, ...: what step s brings is spread over (s - U, s]. */
static double updated_at(const struct phema_family *kind, double end, double t)
{
    double every = (double)kind->every;
    double last = t < 1 ? 0 : 1 + every * floor((t - 1) / every);
    double next = t < 1 ? 1 : last + every;
    if (next > end && t >= 1)
        return 1;
    phema_quad all = phema_log_updates(kind->every, (phema_quad)end);
    double before = 0, after = 0;
    if (last > 0)
        before = (double)phema_quad_exp(kind->power *
                                        (all - phema_log_updates(kind->every, (phema_quad)last)));
    after = (double)phema_quad_exp(kind->power *
                                   (all - phema_log_updates(kind->every, (phema_quad)next)));
    return share_between(t, last, next, before, after);
}

/* Backwards through steps and times; kept: product of the betas behind step j, the weight before
 * its end. What the first step of the list brings is spread over one step. */
static void follow_betas(double *out, const struct phema_betas *betas, double end,
                         const double *times, size_t n)
{
    size_t j = betas->n;
    while (j > 0 && (double)betas->steps[j - 1] > end)
        j--;
    double kept = 1;
    for (size_t i = n; i-- > 0;) {
        double t = times[i];
        double step = 0, begin = 0;
        for (; j > 0; j--) {
            step = (double)betas->steps[j - 1];
            begin = j > 1 ? (double)betas->steps[j - 2] : step - 1;
            if (t > begin)
                break;
            kept *= betas->betas[j - 1];
        }
        bool is_inside = j > 0 && t < step;
        out[i] = is_inside ? share_between(t, begin, step, kept * betas->betas[j - 1], kept) : kept;
    }
}

void phema_profile_cumulative(double *out, const struct phema_profile *profile, const double *times,
                              size_t n)
{
    struct phema_family kind = phema_family_of(profile);
    if (kind.form == PHEMA_FAMILY_TABLE) {
        follow_betas(out, kind.betas, profile->t, times, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double t = times[i] < 0 ? 0 : times[i];
        if (t >= profile->t)
            out[i] = 1;
        else if (kind.every > 1)
            out[i] = updated_at(&kind, profile->t, t);
        else
            out[i] = (double)phema_family_decay(&kind, (phema_quad)t, (phema_quad)profile->t);
    }
}
