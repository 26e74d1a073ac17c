/* drafts.h - planned outputs of small series, for tests. */
#ifndef TESTS_OUTPUT_DRAFTS_H
#define TESTS_OUTPUT_DRAFTS_H

#include <math.h>
#include <sys/stat.h>

#include "../formats/build.h"
#include "phema/output.h"

/* A plan with given weights, and its outputs. */
struct made {
    struct phema_plan *plan;
    struct phema_outputs outputs;
};

struct wanted {
    const char *snapshots; /* paths in the directory of the test, one per line */
    const char *out, *into, *key;
    const char *include, *exclude; /* NULL: all tensors, no tensor */
    uint64_t shard_bytes;
    bool is_conversion;
};

static inline char *in_tmp(const char *name)
{
    return name ? support_tmp_path(name) : NULL;
}

/* A manifest of the snapshots, in their order, and a file of weights: 1/2 for each. */
static inline void write_series(const char *snapshots, char **manifest, char **weights)
{
    struct phema_strbuf json = {0}, list = {0};
    phema_strbuf_puts(&json, "{\"snapshots\": [");
    int n = 0;
    for (const char *at = snapshots; *at; n++) {
        int size = (int)strcspn(at, "\n");
        phema_strbuf_printf(&json, "%s{\"file\": \"%.*s\", \"time\": %d}", n ? ", " : "", size, at,
                            n + 1);
        phema_strbuf_printf(&list, "%.*s 0.5\n", size, at);
        at += size + (at[size] == '\n');
    }
    phema_strbuf_puts(&json, "]}");
    *manifest = support_tmp_path("manifest.json");
    *weights = support_tmp_path("weights.txt");
    support_write(*manifest, json.data, json.size);
    support_write(*weights, list.data, list.size);
    phema_strbuf_clear(&json);
    phema_strbuf_clear(&list);
}

static inline void clear_made(struct made *made)
{
    phema_outputs_clear(&made->outputs);
    phema_plan_free(made->plan);
    *made = (struct made){0};
}

static inline enum phema_status make_outputs(struct made *made, const struct wanted *wanted,
                                             struct phema_error *err)
{
    char *manifest = NULL, *weights = NULL;
    write_series(wanted->snapshots, &manifest, &weights);
    char *out = in_tmp(wanted->out), *into = in_tmp(wanted->into), *one = in_tmp(wanted->snapshots);
    struct phema_plan_options options = {.series = {.snapshots = manifest,
                                                    .from = PHEMA_UNKNOWN,
                                                    .to = PHEMA_UNKNOWN,
                                                    .key = wanted->key,
                                                    .includes = &wanted->include,
                                                    .n_includes = wanted->include != NULL,
                                                    .excludes = &wanted->exclude,
                                                    .n_excludes = wanted->exclude != NULL,
                                                    .needs_no_profiles = true},
                                         .weights_file = weights};
    if (wanted->is_conversion) {
        options.is_conversion = options.series.is_conversion = options.series.is_alone = true;
        options.series.snapshots = one;
        options.weights_file = NULL;
    }
    struct phema_outputs_options naming = {.out = out,
                                           .into = into,
                                           .key = wanted->key,
                                           .shard_bytes = wanted->shard_bytes,
                                           .is_conversion = wanted->is_conversion,
                                           .accumulator = "f64",
                                           .command_options = ""};
    *made = (struct made){0};
    enum phema_status status = phema_plan_make(&made->plan, &options, err);
    if (!status)
        status = phema_outputs_make(&made->outputs, made->plan, &naming, err);
    if (status)
        clear_made(made);
    free(manifest);
    free(weights);
    free(out);
    free(into);
    free(one);
    return status;
}

/* A safetensors file of this JSON and n_data bytes of data. */
static inline void write_plain(const char *name, const char *json, size_t n_data)
{
    struct phema_strbuf file = {0};
    put_safetensors(&file, json, n_data);
    char *path = support_tmp_path(name);
    support_write(path, file.data, file.size);
    phema_strbuf_clear(&file);
    free(path);
}

static inline void refuse(const struct wanted *wanted, enum phema_status status, const char *part)
{
    struct phema_error err = {0};
    struct made made;
    assert_fails(make_outputs(&made, wanted, &err), status, &err, part);
    assert_null(strchr(err.message, '\n'));
}

static inline void accept(struct made *made, const struct wanted *wanted)
{
    struct phema_error err = {0};
    assert_ok(make_outputs(made, wanted, &err), &err);
}

#endif
