// SPDX-License-Identifier: Apache-2.0
/* setting.c - the names of settings: the one table of them below the command line. */
#include "phema/setting.h"

#include <stdarg.h>

/* option: as the program has it. argument: as Python has it. */
#define ROW(option, argument)                                                                      \
    {                                                                                              \
        "--" option, "--" option " ", argument "=", argument                                       \
    }
#define FLAG(option, argument)                                                                     \
    {                                                                                              \
        "--" option, "--" option " ", argument "=True", argument                                   \
    }

/* The package for Python has none: messages name that of the program. */
#define PROGRAM(option)                                                                            \
    {                                                                                              \
        "--" option, "--" option " ", "--" option " ", "--" option                                 \
    }

static const struct {
    const char *option, *option_equals, *argument_equals, *argument;
} settings[PHEMA_N_SETTINGS] = {
    [PHEMA_SET_NONE] = {"--", "", "", ""},
    [PHEMA_SET_ADVISE] = PROGRAM("advise"),
    [PHEMA_SET_AFTER] = ROW("after", "after"),
    [PHEMA_SET_ALLOW_GLOBAL] = ROW("allow-global", "allow_global"),
    [PHEMA_SET_AT] = ROW("at", "at"),
    [PHEMA_SET_CHECKS] = ROW("checks", "checks"),
    [PHEMA_SET_CONVERT] = PROGRAM("convert"),
    [PHEMA_SET_COUNT] = PROGRAM("count"),
    [PHEMA_SET_DESIGN] = PROGRAM("design"),
    [PHEMA_SET_DEVICE] = PROGRAM("device"),
    [PHEMA_SET_DISK] = ROW("disk", "disk_bytes"),
    [PHEMA_SET_DROP_CACHE] = FLAG("drop-cache", "drop_cache"),
    [PHEMA_SET_DTYPE] = ROW("dtype", "dtype"),
    [PHEMA_SET_EVERY] = ROW("every", "every"),
    [PHEMA_SET_EXCLUDE] = ROW("exclude", "exclude"),
    [PHEMA_SET_EXCLUDE_FILE] = PROGRAM("exclude-file"),
    [PHEMA_SET_EXEC] = PROGRAM("exec"),
    [PHEMA_SET_FORCE] = FLAG("force", "replace"),
    [PHEMA_SET_FROM] = ROW("from", "from_"),
    [PHEMA_SET_GAMMA] = ROW("gamma", "gamma"),
    [PHEMA_SET_GPU_MEMORY] = PROGRAM("gpu-memory"),
    [PHEMA_SET_INCLUDE] = ROW("include", "include"),
    [PHEMA_SET_INPUT_HASH] = ROW("input-hash", "input_hash"),
    [PHEMA_SET_INPUT_PROFILE] = ROW("input-profile", "input_profile"),
    [PHEMA_SET_INPUT_SIGMA] = ROW("input-sigma", "input_sigma"),
    [PHEMA_SET_INTO] = ROW("into", "into"),
    [PHEMA_SET_IO] = ROW("io", "io"),
    [PHEMA_SET_JSON] = PROGRAM("json"),
    [PHEMA_SET_KEEP_EXISTING] = PROGRAM("keep-existing"),
    [PHEMA_SET_KEY] = ROW("key", "key"),
    [PHEMA_SET_LAST] = ROW("last", "last"),
    [PHEMA_SET_LAYOUT] = ROW("layout", "layout"),
    [PHEMA_SET_LEVEL] = ROW("level", "level"),
    [PHEMA_SET_LIKE] = ROW("like", "like"),
    [PHEMA_SET_MAX_ERROR] = ROW("max-error", "max_error"),
    [PHEMA_SET_MAX_RAM] = ROW("max-ram", "max_ram_bytes"),
    [PHEMA_SET_MAX_WIDTHS] = ROW("max-widths", "max_widths"),
    [PHEMA_SET_METRIC] = ROW("metric", "metric"),
    [PHEMA_SET_MODEL] = ROW("model", "model"),
    [PHEMA_SET_MOVED_SNAPSHOTS] = ROW("snapshots", "snapshots"),
    [PHEMA_SET_NAME_REGEX] = ROW("name-regex", "name_regex"),
    [PHEMA_SET_OVERFLOW] = ROW("overflow", "overflow"),
    [PHEMA_SET_PARAMS] = ROW("params", "params"),
    [PHEMA_SET_PART] = PROGRAM("part"),
    [PHEMA_SET_PROFILE] = ROW("profile", "profile"),
    [PHEMA_SET_PROFILE_MEMORY] = PROGRAM("profile-memory"),
    [PHEMA_SET_PUBLISH] = PROGRAM("publish"),
    [PHEMA_SET_RANKS] = PROGRAM("ranks"),
    [PHEMA_SET_RAW_EVERY] = PROGRAM("raw-every"),
    [PHEMA_SET_RESET_AT] = ROW("reset-at", "reset_at"),
    [PHEMA_SET_RESUME] = PROGRAM("resume"),
    [PHEMA_SET_RULE] = ROW("rule", "rules"),
    [PHEMA_SET_RUN] = ROW("run", "run"),
    [PHEMA_SET_SCHEDULE] = ROW("schedule", "schedule"),
    [PHEMA_SET_SCORE_REGEX] = PROGRAM("score-regex"),
    [PHEMA_SET_SHARD_SIZE] = ROW("shard-size", "shard_bytes"),
    [PHEMA_SET_SHELL] = PROGRAM("shell"),
    [PHEMA_SET_SIGMA_REL] = ROW("sigma-rel", "sigma_rel"),
    [PHEMA_SET_SKIP_EXISTING] = PROGRAM("skip-existing"),
    [PHEMA_SET_SOLVER] = PROGRAM("solver"),
    [PHEMA_SET_STEPS] = PROGRAM("steps"),
    [PHEMA_SET_TENSORS] = PROGRAM("tensors"),
    [PHEMA_SET_THREADS] = ROW("threads", "threads"),
    [PHEMA_SET_TIME_OFFSET] = ROW("time-offset", "time_offset"),
    [PHEMA_SET_TO] = ROW("to", "to"),
    [PHEMA_SET_TRUTH_AT] = PROGRAM("truth-at"),
    [PHEMA_SET_UNIT] = ROW("unit", "unit"),
    [PHEMA_SET_UNTIL] = ROW("until", "until"),
    [PHEMA_SET_UPDATE_EVERY] = ROW("update-every", "update_every"),
    [PHEMA_SET_USE] = ROW("use", "use"),
    [PHEMA_SET_VERIFY] = FLAG("verify", "verify"),
    [PHEMA_SET_WEIGHTS] = ROW("weights", "weights"),
    [PHEMA_SET_OUT] = ROW("OUT", "out"), /* operands are only changed: no message names them */
    [PHEMA_SET_SNAPSHOTS] = ROW("SNAPSHOTS", "snapshots"),
    [PHEMA_SET_INSPECTED] = {"--inspect", "", "", ""},
};

const char *phema_setting_name(enum phema_setting setting)
{
    return phema_settings_are_options ? settings[setting].option
                                      : settings[setting].argument_equals;
}

const char *phema_setting_equals(enum phema_setting setting)
{
    return phema_settings_are_options ? settings[setting].option_equals
                                      : settings[setting].argument_equals;
}

const char *phema_setting_option(enum phema_setting setting)
{
    return settings[setting].option + 2;
}

const char *phema_setting_dashed(enum phema_setting setting)
{
    return settings[setting].option;
}

const char *phema_setting_keeping_nan(void)
{
    return phema_settings_are_options ? "--nan keep" : "refuse_nan=False";
}

static const char *place_of(enum phema_setting setting)
{
    return phema_settings_are_options ? settings[setting].option : settings[setting].argument;
}

enum phema_status(phema_blame)(struct phema_error *err, enum phema_status status,
                               enum phema_setting setting)
{
    return phema_error_set_about(err, status, phema_setting_option(setting));
}

enum phema_status(phema_fail_setting)(struct phema_error *err, enum phema_status status,
                                      enum phema_setting setting, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)phema_fail_about(err, status, place_of(setting), phema_setting_option(setting), format,
                           args);
    va_end(args);
    return status;
}

enum phema_status(phema_fail_in_setting)(struct phema_error *err, enum phema_status status,
                                         enum phema_setting setting)
{
    (void)phema_fail_in(err, status, "%s", place_of(setting));
    return phema_blame(err, status, setting);
}

enum phema_status(phema_suggest)(struct phema_error *err, enum phema_status status,
                                 enum phema_setting setting, const char *value)
{
    return phema_error_change(err, status, phema_setting_option(setting), value);
}
