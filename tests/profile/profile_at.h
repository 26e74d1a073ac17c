/* profile_at.h - the profile of a SPEC that ends at a time; a failure ends the test. */
#ifndef TESTS_PROFILE_AT_H
#define TESTS_PROFILE_AT_H

#include "phema/profile.h"
#include "support.h"

static inline struct phema_profile profile_at(struct phema_arena *arena, const char *text, double t)
{
    struct phema_error err = {0};
    struct phema_spec *spec = NULL;
    struct phema_profile profile = {0};
    assert_ok(phema_spec_parse(&spec, arena, text, &err), &err);
    assert_ok(phema_spec_profile(&profile, spec, t, &err), &err);
    return profile;
}

#endif
