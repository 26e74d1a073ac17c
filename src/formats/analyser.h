/* analyser.h - what clang's static analyser cannot see of another room: these return the status
 * they are given, so that a failure is never taken for success. */
#ifndef PHEMA_FORMATS_ANALYSER_H
#define PHEMA_FORMATS_ANALYSER_H

#include "phema/error.h"

#ifdef __clang_analyzer__
#define phema_fail(err, status, ...)    ((void)(phema_fail)(err, status, __VA_ARGS__), (status))
#define phema_fail_in(err, status, ...) ((void)(phema_fail_in)(err, status, __VA_ARGS__), (status))
#endif

#endif
