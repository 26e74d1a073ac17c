/* setting.h - what a caller can set, by the name that the caller knows. Messages of all modules
 * name settings with these functions: options in the program, arguments in the library. */
#ifndef PHEMA_SETTING_H
#define PHEMA_SETTING_H

#include <stdbool.h>

#include "phema/error.h"

enum phema_setting {
    PHEMA_SET_NONE, /* of structs: no setting */
    PHEMA_SET_ADVISE,
    PHEMA_SET_AFTER,
    PHEMA_SET_ALLOW_GLOBAL,
    PHEMA_SET_AT,
    PHEMA_SET_CHECKS,
    PHEMA_SET_CONVERT,
    PHEMA_SET_COUNT,
    PHEMA_SET_DESIGN,
    PHEMA_SET_DEVICE,
    PHEMA_SET_DISK,
    PHEMA_SET_DROP_CACHE,
    PHEMA_SET_DTYPE,
    PHEMA_SET_EVERY,
    PHEMA_SET_EXCLUDE,
    PHEMA_SET_EXCLUDE_FILE, /* the library has lists of SNAPSHOTS */
    PHEMA_SET_EXEC,
    PHEMA_SET_FORCE,
    PHEMA_SET_FROM,
    PHEMA_SET_GAMMA,
    PHEMA_SET_GPU_MEMORY,
    PHEMA_SET_INCLUDE,
    PHEMA_SET_INPUT_HASH,
    PHEMA_SET_INPUT_PROFILE,
    PHEMA_SET_INPUT_SIGMA,
    PHEMA_SET_INTO,
    PHEMA_SET_IO,
    PHEMA_SET_JSON,
    PHEMA_SET_KEEP_EXISTING,
    PHEMA_SET_KEY,
    PHEMA_SET_LAST,
    PHEMA_SET_LAYOUT,
    PHEMA_SET_LEVEL,
    PHEMA_SET_LIKE,
    PHEMA_SET_MAX_ERROR,
    PHEMA_SET_MAX_RAM,
    PHEMA_SET_MAX_WIDTHS,
    PHEMA_SET_METRIC,
    PHEMA_SET_MODEL,
    PHEMA_SET_MOVED_SNAPSHOTS, /* an option of verify */
    PHEMA_SET_NAME_REGEX,
    PHEMA_SET_OVERFLOW,
    PHEMA_SET_PARAMS,
    PHEMA_SET_PART,
    PHEMA_SET_PROFILE,
    PHEMA_SET_PROFILE_MEMORY,
    PHEMA_SET_PUBLISH,
    PHEMA_SET_RANKS,
    PHEMA_SET_RAW_EVERY,
    PHEMA_SET_RESET_AT,
    PHEMA_SET_RESUME,
    PHEMA_SET_RULE,
    PHEMA_SET_RUN,
    PHEMA_SET_SCHEDULE,
    PHEMA_SET_SCORE_REGEX,
    PHEMA_SET_SHARD_SIZE,
    PHEMA_SET_SHELL,
    PHEMA_SET_SIGMA_REL,
    PHEMA_SET_SKIP_EXISTING,
    PHEMA_SET_SOLVER,
    PHEMA_SET_STEPS,
    PHEMA_SET_TENSORS,
    PHEMA_SET_THREADS,
    PHEMA_SET_TIME_OFFSET,
    PHEMA_SET_TO,
    PHEMA_SET_TRUTH_AT,
    PHEMA_SET_UNIT,
    PHEMA_SET_UNTIL,
    PHEMA_SET_UPDATE_EVERY,
    PHEMA_SET_USE,
    PHEMA_SET_VERIFY,
    PHEMA_SET_WEIGHTS,
    /* operands */
    PHEMA_SET_OUT,
    PHEMA_SET_SNAPSHOTS,
    /* no change, but a look at a path with the verb inspect */
    PHEMA_SET_INSPECTED,
    PHEMA_N_SETTINGS
};

/* How messages name settings: false in the library, which defines it anew. */
extern const bool phema_settings_are_options;

/* "--dtype" or "dtype=", for sentences */
const char *phema_setting_name(enum phema_setting setting);
/* "--dtype " or "dtype=", before a value */
const char *phema_setting_equals(enum phema_setting setting);
/* "--nan keep" or "refuse_nan=False" */
const char *phema_setting_keeping_nan(void);
/* "dtype", an option of the program without dashes, or "OUT", its operand; whoever calls */
const char *phema_setting_option(enum phema_setting setting);
/* The same after "--", for commands. */
const char *phema_setting_dashed(enum phema_setting setting);

/* As phema_fail and phema_fail_in. The message begins with "--dtype: " or "dtype: ": the failure is
 * about this setting. */
enum phema_status phema_fail_setting(struct phema_error *err, enum phema_status status,
                                     enum phema_setting setting, const char *format, ...)
    PHEMA_PRINTF(4, 5);
enum phema_status phema_fail_in_setting(struct phema_error *err, enum phema_status status,
                                        enum phema_setting setting);
/* Says only that the failure is about the setting, and returns the status. */
enum phema_status phema_blame(struct phema_error *err, enum phema_status status,
                              enum phema_setting setting);

/* Adds a change that would help, and returns the status. value: NULL for a flag; "" leaves the
 * setting out. It is copied; a change that does not fit is left out with all others, because half a
 * remedy is none. */
enum phema_status phema_suggest(struct phema_error *err, enum phema_status status,
                                enum phema_setting setting, const char *value);

#ifdef __clang_analyzer__ /* as in error.h */
#define phema_fail_setting(err, status, ...)                                                       \
    ((void)(phema_fail_setting)(err, status, __VA_ARGS__), (status))
#define phema_fail_in_setting(err, status, setting)                                                \
    ((void)(phema_fail_in_setting)(err, status, setting), (status))
#define phema_blame(err, status, setting) ((void)(phema_blame)(err, status, setting), (status))
#define phema_suggest(err, status, setting, value)                                                 \
    ((void)(phema_suggest)(err, status, setting, value), (status))
#endif

#endif
