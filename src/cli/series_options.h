/* series_options.h - options that several verbs have: rows of their tables, and what becomes of the
 * values.
 */
#ifndef CLI_SERIES_OPTIONS_H
#define CLI_SERIES_OPTIONS_H

#include "options.h"
#include "phema/plan.h"

struct cli_series_values {
    const char *snapshots, *layout, *name_regex, *unit, *key, *buffers;
    struct cli_reals input_sigma;
    uint64_t update_every, every, last;
    double from, to;
    struct cli_texts include, exclude, allow_global, input_profile;
};

struct cli_target_values {
    struct cli_reals sigma_rel, gamma, at;
    struct cli_texts profile, rule;
    const char *weights, *metric, *ridge, *solver;
    double max_error;
};

#define CLI_ROW(type, member) offsetof(struct type, member)

#define CLI_COMMON_ROWS(type)                                                                        \
    {"json",   MESSAGES,                                                                             \
     CLI_FLAG, CLI_ROW(type, common.is_json),                                                        \
     NULL,     "print the result as one JSON object",                                                \
     0,        0},                                                                                   \
        {"quiet", MESSAGES,          CLI_FLAG, CLI_ROW(type, common.is_quiet),                       \
         NULL,    "say errors only", 0,        'q'},                                                 \
        {"verbose", MESSAGES, CLI_FLAG, CLI_ROW(type, common.is_verbose), NULL, "say more", 0, 'v'}, \
        {"no-color", MESSAGES,                                                                       \
         CLI_FLAG,   CLI_ROW(type, common.has_no_color),                                             \
         NULL,       "no colours (as NO_COLOR in the environment)",                                  \
         0,          0},                                                                             \
    {                                                                                                \
        "help", MESSAGES, CLI_FLAG, CLI_ROW(type, common.is_help), NULL, "print this help", 0, 'h'   \
    }

#define CLI_PICKLE_ROWS(type, allow_member)                                                        \
    {                                                                                              \
        "allow-global", INPUT, CLI_TEXTS, CLI_ROW(type, allow_member), "NAME",                     \
            "let one more name through in a pickle, as an\ninert object (repeatable)", 0, 0        \
    }

/* via: how the verb's struct reaches its series and target: nothing, or "run." */
#define CLI_SERIES_ROWS(type, via)                                                                 \
    {"SNAPSHOTS",                                                                                  \
     INPUT,                                                                                        \
     CLI_OPERAND,                                                                                  \
     CLI_ROW(type, via series.snapshots),                                                          \
     NULL,                                                                                         \
     "directory, manifest (*.json) or @list.txt",                                                  \
     CLI_SHAPES_BYTES,                                                                             \
     0},                                                                                           \
        {"layout",                                                                                 \
         INPUT,                                                                                    \
         CLI_CHOICE,                                                                               \
         CLI_ROW(type, via series.layout),                                                         \
         "auto|own|edm2|ema-pytorch|posthoc-ema|lightning|hf|manifest",                            \
         "who wrote the snapshots; auto: recognised by names",                                     \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"name-regex",                                                                             \
         INPUT,                                                                                    \
         CLI_TEXT,                                                                                 \
         CLI_ROW(type, via series.name_regex),                                                     \
         "RE",                                                                                     \
         "what names say: groups (?<time>..), (?<sigma>..)\nor (?<index>..)",                      \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"input-sigma",                                                                            \
         INPUT,                                                                                    \
         CLI_REALS,                                                                                \
         CLI_ROW(type, via series.input_sigma),                                                    \
         "LIST",                                                                                   \
         "sigma_rel of the snapshots by index, where names\nand metadata do not say it",           \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"input-profile",                                                                          \
         INPUT,                                                                                    \
         CLI_TEXTS,                                                                                \
         CLI_ROW(type, via series.input_profile),                                                  \
         "SPEC",                                                                                   \
         "how snapshots were averaged, where nothing says\nit: raw, ema:decay=0.9999 "             \
         "(repeatable: by index)",                                                                 \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"update-every",                                                                           \
         INPUT,                                                                                    \
         CLI_COUNT,                                                                                \
         CLI_ROW(type, via series.update_every),                                                   \
         "U",                                                                                      \
         "the averages were updated every U steps only\n(ema-pytorch: 100, pytorch-posthoc-ema: "  \
         "10 unless\nset otherwise)",                                                              \
         CLI_SHAPES_BYTES | CLI_POSITIVE,                                                          \
         0},                                                                                       \
        {"unit",                                                                                   \
         INPUT,                                                                                    \
         CLI_CHOICE,                                                                               \
         CLI_ROW(type, via series.unit),                                                           \
         "steps|images|kimg|tokens",                                                               \
         "what times count (a label: ratios matter)",                                              \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"from",                                                                                   \
         INPUT,                                                                                    \
         CLI_REAL,                                                                                 \
         CLI_ROW(type, via series.from),                                                           \
         "T",                                                                                      \
         "use snapshots from time T on",                                                           \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"to",                                                                                     \
         INPUT,                                                                                    \
         CLI_REAL,                                                                                 \
         CLI_ROW(type, via series.to),                                                             \
         "T",                                                                                      \
         "use snapshots up to time T",                                                             \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"every",                                                                                  \
         INPUT,                                                                                    \
         CLI_COUNT,                                                                                \
         CLI_ROW(type, via series.every),                                                          \
         "N",                                                                                      \
         "use every Nth time, counted from the newest",                                            \
         CLI_SHAPES_BYTES | CLI_POSITIVE,                                                          \
         0},                                                                                       \
        {"last",                                                                                   \
         INPUT,                                                                                    \
         CLI_COUNT,                                                                                \
         CLI_ROW(type, via series.last),                                                           \
         "N",                                                                                      \
         "use the N newest times",                                                                 \
         CLI_SHAPES_BYTES | CLI_POSITIVE,                                                          \
         0},                                                                                       \
        {"include",                                                                                \
         INPUT,                                                                                    \
         CLI_TEXTS,                                                                                \
         CLI_ROW(type, via series.include),                                                        \
         "RE",                                                                                     \
         "only tensors whose names match (repeatable)",                                            \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"exclude",                                                                                \
         INPUT,                                                                                    \
         CLI_TEXTS,                                                                                \
         CLI_ROW(type, via series.exclude),                                                        \
         "RE",                                                                                     \
         "leave out tensors whose names match (repeatable)",                                       \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        {"key",                                                                                    \
         INPUT,                                                                                    \
         CLI_TEXT,                                                                                 \
         CLI_ROW(type, via series.key),                                                            \
         "PATH",                                                                                   \
         "subtree of nested checkpoints; . for all (default:\nwhat the layout or the names tell, " \
         "and is said)",                                                                           \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
        CLI_PICKLE_ROWS(type, via series.allow_global)

/* The averages that are wanted, and how their weights are found. */
#define CLI_AVERAGE_ROWS(type, via)                                                                \
    {"sigma-rel",                                                                                  \
     TARGET,                                                                                       \
     CLI_REALS,                                                                                    \
     CLI_ROW(type, via target.sigma_rel),                                                          \
     "LIST",                                                                                       \
     "widths of the averages to make: 0.1 or 0.05,0.1\nor 0.01:0.25:0.005 (ends included)",        \
     0,                                                                                            \
     0},                                                                                           \
        {"gamma",   TARGET,                                                                        \
         CLI_REALS, CLI_ROW(type, via target.gamma),                                               \
         "LIST",    "the same as exponents of the power function",                                 \
         0,         0},                                                                            \
        {"profile",                                                                                \
         TARGET,                                                                                   \
         CLI_TEXTS,                                                                                \
         CLI_ROW(type, via target.profile),                                                        \
         "SPEC",                                                                                   \
         "averages of other shapes: ema:half-life=2000,\nwindow:20k, raw, sma:10, 'raw - "         \
         "ema:2000', "                                                                             \
         "...\n(repeatable; see posthoc-ema(1))",                                                  \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "at", TARGET, CLI_REALS, CLI_ROW(type, via target.at), "TIME",                             \
            "times of the averages, as names write them\n(default: the newest snapshot)", 0, 0     \
    }

/* How weights are found. */
#define CLI_METRIC_ROWS(type, via)                                                                 \
    {"metric",                                                                                     \
     NUMBERS,                                                                                      \
     CLI_CHOICE,                                                                                   \
     CLI_ROW(type, via target.metric),                                                             \
     "motion|walk|profile",                                                                        \
     "what the least squares measures (default motion:\nas parameters were seen to move, "         \
     "else walk);\nprofile gives the paper's and EDM2's weights",                                  \
     CLI_SHAPES_BYTES,                                                                             \
     0},                                                                                           \
        {"ridge",                                                                                  \
         NUMBERS,                                                                                  \
         CLI_TEXT,                                                                                 \
         CLI_ROW(type, via target.ridge),                                                          \
         "auto|none|VALUE",                                                                        \
         "how much large weights cost (default auto: what\nrounding of the files makes of them)",  \
         CLI_SHAPES_BYTES,                                                                         \
         0},                                                                                       \
    {                                                                                              \
        "solver", NUMBERS, CLI_CHOICE, CLI_ROW(type, via target.solver),                           \
            "auto|quad|lapack|cusolver",                                                           \
            "quad precision, LAPACK in float64, or a factor\nmade on a GPU and refined in quad",   \
            CLI_SHAPES_BYTES, 0                                                                    \
    }

#define CLI_SOLVE_ROWS(type, via)                                                                  \
    {"weights",                                                                                    \
     TARGET,                                                                                       \
     CLI_TEXT,                                                                                     \
     CLI_ROW(type, via target.weights),                                                            \
     "FILE",                                                                                       \
     "use these weights, exactly as given: the JSON of\nweights --json, or 'file weight' "         \
     "lines",                                                                                      \
     CLI_SHAPES_BYTES,                                                                             \
     0},                                                                                           \
        CLI_METRIC_ROWS(type, via)

#define CLI_RULE_ROW(type, via)                                                                    \
    {                                                                                              \
        "rule", TARGET, CLI_TEXTS, CLI_ROW(type, via target.rule), "RE=SIGMA",                     \
            "another width for tensors whose names match, or\nRE=copy: the newest snapshot's "     \
            "(repeatable, the\nfirst one that matches)",                                           \
            CLI_SHAPES_BYTES, 0                                                                    \
    }

#define CLI_TARGET_ROWS(type, via)                                                                 \
    CLI_AVERAGE_ROWS(type, via), CLI_RULE_ROW(type, via), CLI_SOLVE_ROWS(type, via),               \
    {                                                                                              \
        "max-error", NUMBERS, CLI_REAL, CLI_ROW(type, via target.max_error), "E",                  \
            "end with status 1, nothing written, when the\npredicted error is above E", 0, 0       \
    }

/* values -> options of plan.h; borrowed from the values. */
PHEMA_FALLIBLE cli_series_options(struct phema_series_options *out, const struct cli_common *common,
                                  const struct cli_series_values *values, struct phema_error *err);
PHEMA_FALLIBLE cli_plan_options(struct phema_plan_options *out, const struct cli_common *common,
                                const struct cli_series_values *series,
                                const struct cli_target_values *target, struct phema_error *err);

/* --max-error: PHEMA_NO names the first target above it. */
PHEMA_FALLIBLE cli_check_error(const struct phema_plan *plan, double max_error,
                               struct phema_error *err);

/* The result on stdout, whole or with PHEMA_ERR_OUTPUT: lines for people, or JSON. No character in
 * it can move the cursor or turn the text. */
PHEMA_FALLIBLE cli_print(const struct phema_strbuf *text, struct phema_error *err);

/* Paths that scripts read are written with their own bytes, unless stdout is a terminal. */
void cli_put_path(struct phema_strbuf *out, const char *path);
PHEMA_FALLIBLE cli_print_as_is(const struct phema_strbuf *text, struct phema_error *err);

/* A line on stderr: the one place that people read messages from. Names in it are escaped as
 * phema_strbuf_puts_escaped does. */
void cli_say(const char *format, ...) PHEMA_PRINTF(1, 2);

#endif
