/* environment.h - settings of simulated devices: numbers and words from the environment. */
#ifndef TESTS_SUPPORT_ENVIRONMENT_H
#define TESTS_SUPPORT_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* unset: where the variable is absent or empty */
static inline uint64_t setting(const char *name, uint64_t unset)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : unset;
}

static inline bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

#endif
