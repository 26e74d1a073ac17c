// SPDX-License-Identifier: Apache-2.0
/* fuzz_containers.c - Checkpoints that hold several snapshots. The input is the names of the
 * tensors of two checkpoints, line by line; an empty line ends the names of the first one, and
 * lines from one that begins with '{' on are the state.json of both. Names begin with a character
 * for dtype and number of elements. The checkpoints are opened as a series. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "phema/json.h"
#include "phema/series.h"
#include "phema/strbuf.h"
#include "phema/tensor_sets.h"

#define N_CHECKPOINTS 2

/* ---- Checkpoints of these names ---- */

struct listing {
    struct phema_strbuf json, data;
};

static void append_text(struct phema_strbuf *json, struct phema_span text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"' || byte == '\\' || byte < 0x20)
            phema_strbuf_printf(json, "\\u%04x", byte);
        else
            phema_strbuf_append(json, (const char *)&byte, 1);
    }
}

/* '#': the time; '%': two widths; '$': one; '!': an average in another dtype; others: a number */
static void add_tensor(struct listing *listing, struct phema_span line, unsigned checkpoint)
{
    static const char kinds[] = "#%$!";
    static const struct {
        const char *dtype, *shape;
        const char *data;
        size_t size;
    } values[] = {
        {"I64", "", NULL, 8},
        {"F64", "2", "\x9a\x99\x99\x99\x99\x99\xa9\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f", 16},
        {"F64", "", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8},
        {"BF16", "1", "\x80\x3f", 2},
        {"F32", "1", "\0\0\x80\x3f", 4}};
    const char *kind = line.size && line.data[0] ? strchr(kinds, line.data[0]) : NULL;
    size_t k = kind ? (size_t)(kind - kinds) : strlen(kinds);
    struct phema_span name = {line.data + (kind != NULL), line.size - (kind != NULL)};
    phema_strbuf_puts(&listing->json, listing->json.size > 1 ? ",\"" : "\"");
    append_text(&listing->json, name);
    phema_strbuf_printf(
        &listing->json, "\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
        values[k].dtype, values[k].shape, listing->data.size, listing->data.size + values[k].size);
    const char time[8] = {(char)(100 * checkpoint)};
    phema_strbuf_append(&listing->data, values[k].data ? values[k].data : time, values[k].size);
}

static void store(const struct listing *listing, unsigned checkpoint)
{
    char name[64];
    struct phema_strbuf file = {0};
    uint64_t size = listing->json.size;
    for (unsigned i = 0; i < 8; i++) {
        char byte = (char)(size >> 8 * i & 0xff);
        phema_strbuf_append(&file, &byte, 1);
    }
    phema_strbuf_append(&file, listing->json.data, listing->json.size);
    if (listing->data.size)
        phema_strbuf_append(&file, listing->data.data, listing->data.size);
    fuzz_require(!file.is_failed, "memory for small files");
    (void)snprintf(name, sizeof(name), "step-%u00/model.safetensors", checkpoint);
    (void)fuzz_store(name, (const uint8_t *)file.data, file.size);
    phema_strbuf_clear(&file);
}

/* '@' is the number of the checkpoint, '~' the hundreds before. */
static void store_state(struct phema_span state)
{
    char name[64];
    uint8_t *text = malloc(state.size + 1);
    if (!text)
        abort();
    for (unsigned i = 1; i <= N_CHECKPOINTS; i++) {
        for (size_t b = 0; b < state.size; b++)
            text[b] = state.data[b] == '@'   ? (uint8_t)('0' + i)
                      : state.data[b] == '~' ? (uint8_t)(i == 1 ? ' ' : '0' + i - 1)
                                             : state.data[b];
        (void)snprintf(name, sizeof(name), "step-%u00/state.json", i);
        const char *path = fuzz_store(name, text, state.size);
        fuzz_require(state.size || remove(path) == 0, "a file can be removed");
    }
    free(text);
}

/* Returns the rest of the input. */
static struct phema_span store_checkpoint(struct phema_span input, unsigned checkpoint)
{
    struct listing listing = {{0}, {0}};
    phema_strbuf_puts(&listing.json, "{");
    while (input.size && input.data[0] != '{') {
        struct phema_span line = phema_span_split(&input, '\n');
        if (!line.size)
            break;
        add_tensor(&listing, line, checkpoint);
    }
    phema_strbuf_puts(&listing.json, "}");
    store(&listing, checkpoint);
    phema_strbuf_clear(&listing.json);
    phema_strbuf_clear(&listing.data);
    return input;
}

static void make_directories(void)
{
    char path[4096 + 64];
    for (unsigned i = 1; i <= N_CHECKPOINTS; i++) {
        (void)snprintf(path, sizeof(path), "%s/step-%u00", fuzz_directory(), i);
        fuzz_require(mkdir(path, 0700) == 0, "a directory below");
        (void)snprintf(path, sizeof(path), "step-%u00/COMPLETE", i);
        (void)fuzz_store(path, (const uint8_t *)"\n", 1);
    }
}

/* ---- The series ---- */

static void read_tensors(const struct phema_series *series, size_t k)
{
    struct phema_reader *reader = NULL;
    struct phema_error err = {0};
    fuzz_require(!phema_reader_open(&reader, series->snapshots[k].checkpoint, &err),
                 "a reader can be opened");
    for (size_t i = 0; i < series->n_tensors; i++) {
        struct phema_tensor tensor = phema_series_tensor_in(series, k, i);
        uint8_t scratch[64];
        const uint8_t *data = NULL;
        fuzz_require(!phema_reader_read(&data, reader, &tensor, 0, tensor.n_elems, scratch, &err),
                     "mapped tensors can be read");
        for (size_t b = 0; b < tensor.size_bytes; b++)
            (void)*(const volatile uint8_t *)(data + b);
    }
    phema_reader_close(reader);
}

static void check_series(const struct phema_series *series)
{
    fuzz_require(series->n > 0 && series->n_tensors > 0, "a series holds something");
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        fuzz_require(k == 0 || series->snapshots[k - 1].time <= snapshot->time,
                     "snapshots are in the order of time");
        fuzz_require(snapshot->kind && snapshot->spec, "every profile is known");
        fuzz_require(snapshot->label && !strchr(snapshot->label, '\n'), "labels are one line");
        read_tensors(series, k);
    }
    for (size_t i = 0; i < series->n_notes; i++)
        fuzz_require(!strchr(series->notes[i], '\n'), "notes are one line");
}

static void open_series(int use, const char *const *profile, const char *name_regex)
{
    struct phema_series_options options = {.snapshots = fuzz_directory(),
                                           .from = PHEMA_UNKNOWN,
                                           .to = PHEMA_UNKNOWN,
                                           .input_profiles = profile,
                                           .n_input_profiles = profile ? 1 : 0,
                                           .name_regex = name_regex,
                                           .use = use};
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    if (phema_series_open(&series, &options, &err)) {
        fuzz_require(!series, "outputs change only on success");
        fuzz_require(err.message[0] && !strchr(err.message, '\n'), "messages are one line");
        return;
    }
    check_series(series);
    phema_series_close(series);
}

/* ---- A new average in place of each set ---- */

static void check_change(const struct phema_set_change *change)
{
    struct phema_json *root = NULL;
    struct phema_error err = {0};
    const struct phema_span text = {(const uint8_t *)change->text.data, change->text.size};
    double width = 0;
    if (!change->file)
        return;
    fuzz_require(!phema_json_parse(&root, text, &err), "what is written is JSON");
    const struct phema_json *emas = phema_json_get(root, "emas");
    const struct phema_json *entry = emas ? phema_json_get(emas, change->new_folder) : NULL;
    const struct phema_json *value = entry ? phema_json_get(entry, "sigma_rel") : NULL;
    fuzz_require(value && phema_json_number(&width, value) && width == 0.08,
                 "the average has the new width");
    phema_json_free(root);
}

static void change_sets(void)
{
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_tensor_sets sets = {0};
    char directory[4096 + 64];
    (void)snprintf(directory, sizeof(directory), "%s/step-200", fuzz_directory());
    if (!phema_checkpoint_open(&checkpoint, directory, NULL, &err) &&
        phema_tensor_sets_list(&sets, &arena, checkpoint, &err))
        sets.n = 0;
    for (size_t s = 0; s < sets.n; s++) {
        struct phema_set_change change;
        if (!phema_tensor_set_change(&change, sets.items[s], directory, 0.08, 150, &arena, &err))
            check_change(&change);
        phema_strbuf_clear(&change.text);
    }
    phema_checkpoint_close(checkpoint);
    phema_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const raw[] = {"raw"};
    static bool is_ready;
    if (!is_ready)
        make_directories();
    is_ready = true;
    struct phema_span rest = {data, size};
    for (unsigned i = 1; i <= N_CHECKPOINTS; i++)
        rest = store_checkpoint(rest, i);
    store_state(rest);
    open_series(PHEMA_USE_ALL, NULL, NULL);
    open_series(PHEMA_USE_AVERAGES, NULL, "step-(?<time>[0-9]+)");
    open_series(PHEMA_USE_RAW, NULL, NULL);
    open_series(PHEMA_USE_ALL, raw, NULL);
    change_sets();
    return 0;
}
