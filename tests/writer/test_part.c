// SPDX-License-Identifier: Apache-2.0
/* An output written by several processes. It appears when all parts are done, and any part can
 * fail, be killed and be written again. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths.h"
#include "phema/cleanup.h"
#include "phema/packed.h"
#include "support.h"

#define N_PARTS   4
#define SIZE      100
#define PART_SIZE (SIZE / N_PARTS)

static const struct phema_writer_options quick = {0};
static const struct phema_writer_options forced = {.replaces = true, .syncs = true};
static const struct phema_writer_part_file one_file = {NULL, SIZE};
static const char digest[] = "0123456789abcdef", other_digest[] = "0123456789abcdee";

static struct phema_writer_part_options part_of(uint64_t part, uint64_t n_parts)
{
    return (struct phema_writer_part_options){.part = part,
                                              .n_parts = n_parts,
                                              .digest = digest,
                                              .files = &one_file,
                                              .n_files = 1,
                                              .syncs = part % 2 == 0};
}

static bool has_marker(const char *path, uint64_t part, uint64_t n_parts)
{
    char *marker = part_marker_path(path, part, n_parts);
    bool is_there = exists(marker);
    free(marker);
    return is_there;
}

static void put_marker(const char *path, uint64_t part, uint64_t n_parts, const void *text,
                       size_t size)
{
    char *marker = part_marker_path(path, part, n_parts);
    support_write(marker, text, size);
    free(marker);
}

static uint8_t byte_at(size_t at)
{
    return (uint8_t)('a' + at % 23);
}

/* Zeros where join fills in a checksum. In two halves, the second one first. */
static enum phema_status put_share(struct phema_writer *writer,
                                   const struct phema_writer_part_options *options,
                                   struct phema_error *err)
{
    size_t size = (size_t)(options->files[0].size_bytes / options->n_parts), half = size / 2;
    size_t first = (size_t)(options->part - 1) * size;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = byte_at(first + i);
    for (unsigned x = 0; options->n_crcs && x < options->crcs[0].n_places; x++)
        for (size_t at = (size_t)options->crcs[0].at[x], i = at; i < at + sizeof(uint32_t); i++)
            if (i >= first && i < first + size)
                data[i - first] = 0;
    enum phema_status status =
        phema_writer_write(writer, first + half, data + half, size - half, err);
    if (!status)
        status = phema_writer_write(writer, first, data, half, err);
    free(data);
    return status;
}

static enum phema_status write_part_with(const char *path,
                                         const struct phema_writer_part_options *options,
                                         struct phema_error *err)
{
    struct phema_writer_part *opened = NULL;
    struct phema_writer *writer = NULL;
    enum phema_status status = phema_writer_part_open(&opened, path, options, err);
    if (status)
        return status;
    status = phema_writer_part_file(&writer, opened, 0, err);
    if (!status)
        status = put_share(writer, options, err);
    if (status) {
        phema_writer_abandon(writer);
        phema_writer_part_abandon(opened);
        return status;
    }
    status = phema_writer_commit(writer, err);
    if (!status)
        return phema_writer_part_finish(opened, err);
    phema_writer_part_abandon(opened);
    return status;
}

static enum phema_status write_part(const char *path, uint64_t part, struct phema_error *err)
{
    const struct phema_writer_part_options options = part_of(part, N_PARTS);
    return write_part_with(path, &options, err);
}

static void write_parts(const char *path)
{
    struct phema_error err = {0};
    for (uint64_t part = 1; part <= N_PARTS; part++)
        assert_ok(write_part(path, part, &err), &err);
}

/* Compares all blocks. */
static enum phema_status check(struct phema_writer_join *opened, struct phema_error *err)
{
    struct phema_writer_check list = {.n_blocks = 0};
    enum phema_status status = phema_writer_join_list_blocks(&list, opened, err);
    uint64_t *differs = calloc(list.n_blocks + 1, sizeof(*differs));
    assert_non_null(differs);
    if (!status)
        status = phema_writer_check_compare(differs, &list, 0, err);
    if (!status)
        status = phema_writer_join_check(opened, &list, differs, err);
    free(differs);
    return status;
}

static enum phema_status join(const char *path, const struct phema_writer_options *options,
                              struct phema_error *err)
{
    struct phema_writer_join *opened = NULL;
    enum phema_status status = phema_writer_join_open(&opened, path, options, err);
    if (!status)
        status = check(opened, err);
    if (!status)
        return phema_writer_join_commit(opened, err);
    phema_writer_join_abandon(opened);
    return status;
}

static void assert_joined(const char *path)
{
    struct phema_error err = {0};
    assert_ok(join(path, &quick, &err), &err);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(data[i], byte_at(i));
    free(data);
    char *partial = with_end(path, ".partial");
    assert_false(exists(partial));
    free(partial);
    for (uint64_t part = 1; part <= N_PARTS; part++)
        assert_false(has_marker(path, part, N_PARTS));
}

static void parts_written_at_once_are_joined(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("at_once");
    pid_t pids[N_PARTS];
    for (uint64_t part = 1; part <= N_PARTS; part++) {
        pids[part - 1] = fork();
        if (pids[part - 1] == 0)
            _exit((int)write_part(path, part, &err));
    }
    for (size_t i = 0; i < N_PARTS; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_false(exists(path));
    assert_joined(path);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "no parts");
    free(path);
}

/* In a child: writes half of its share, then receives the signal. */
static void die_in_part(const char *path, uint64_t part, int signal_number)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct phema_error err = {0};
        phema_cleanup_install_handlers();
        struct phema_writer_part_options options = part_of(part, N_PARTS);
        struct phema_writer_part *opened = NULL;
        struct phema_writer *writer = NULL;
        if (phema_writer_part_open(&opened, path, &options, &err) ||
            phema_writer_part_file(&writer, opened, 0, &err) ||
            phema_writer_write(writer, (part - 1) * PART_SIZE, "?????", 5, &err))
            _exit(1);
        (void)raise(signal_number);
        _exit(2);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
}

static void a_part_that_is_killed_is_named_and_written_again(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("killed");
    assert_ok(write_part(path, 1, &err), &err);
    die_in_part(path, 3, SIGKILL);
    assert_true(has_marker(path, 3, N_PARTS));
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err,
                 "of 4 parts, parts 2, 4 are not here, part 3 is not finished");
    assert_ok(write_part(path, 4, &err), &err);
    assert_ok(write_part(path, 2, &err), &err);
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 3 is not finished");
    assert_ok(write_part(path, 3, &err), &err);
    die_in_part(path, 1, SIGKILL); /* a finished part becomes unfinished */
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 1 is not finished");
    assert_ok(write_part(path, 1, &err), &err);
    assert_joined(path);
    free(path);
}

static void an_interrupted_part_removes_its_marker(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("interrupted");
    char *partial = with_end(path, ".partial");
    assert_ok(write_part(path, 1, &err), &err);
    assert_ok(write_part(path, 2, &err), &err);
    die_in_part(path, 2, SIGTERM);
    assert_false(has_marker(path, 2, N_PARTS));
    assert_true(has_marker(path, 1, N_PARTS));
    assert_true(exists(partial));
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "parts 2-4 are not here");
    for (uint64_t part = 2; part <= N_PARTS; part++)
        assert_ok(write_part(path, part, &err), &err);
    assert_joined(path);
    free(partial);
    free(path);
}

static void a_part_has_one_run_at_a_time_and_ordinary_runs_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("beside");
    struct phema_writer_part_options options = part_of(2, N_PARTS);
    struct phema_writer_part *part = NULL;
    struct phema_writer *writer = NULL;
    assert_ok(phema_writer_part_open(&part, path, &options, &err), &err);
    assert_fails(write_part(path, 2, &err), PHEMA_ERR_OUTPUT, &err, "part 2 of 4 is being written");
    assert_fails(phema_writer_open(&writer, path, SIZE, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                 "another run is writing it");
    assert_ok(write_part(path, 1, &err), &err); /* other parts are allowed */
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 2 is being written");
    phema_writer_part_abandon(part);
    phema_writer_part_abandon(NULL);
    /* part 1 is done, so no ordinary run replaces it */
    assert_fails(phema_writer_open(&writer, path, SIZE, &forced, &err), PHEMA_ERR_OUTPUT, &err,
                 "part-1-of-4");
    for (uint64_t n = 2; n <= N_PARTS; n++)
        assert_ok(write_part(path, n, &err), &err);
    assert_joined(path);

    char *second = support_tmp_path("ordinary");
    assert_ok(phema_writer_open(&writer, second, SIZE, &quick, &err), &err);
    assert_fails(write_part(second, 1, &err), PHEMA_ERR_OUTPUT, &err, "another run is writing it");
    assert_false(has_marker(second, 1, N_PARTS));
    phema_writer_abandon(writer);
    free(second);
    free(path);
}

static void parts_of_different_outputs_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("unlike");
    struct phema_writer_part *part = NULL;
    assert_ok(write_part(path, 1, &err), &err);
    struct phema_writer_part_options options = part_of(2, N_PARTS);
    options.digest = other_digest;
    assert_fails(phema_writer_part_open(&part, path, &options, &err), PHEMA_ERR_OUTPUT, &err,
                 "of another output");
    assert_false(has_marker(path, 2, N_PARTS));
    options = part_of(2, 3);
    assert_fails(phema_writer_part_open(&part, path, &options, &err), PHEMA_ERR_OUTPUT, &err,
                 "another number of parts");
    assert_false(has_marker(path, 2, 3));
    /* the same after a killed run */
    char *killed = support_tmp_path("unlike_killed");
    die_in_part(killed, 1, SIGKILL);
    options = part_of(2, N_PARTS);
    options.digest = other_digest;
    assert_fails(phema_writer_part_open(&part, killed, &options, &err), PHEMA_ERR_OUTPUT, &err,
                 "of another output");
    /* a leftover of only this part is replaced */
    options.part = 1;
    assert_ok(phema_writer_part_open(&part, killed, &options, &err), &err);
    phema_writer_part_abandon(part);
    /* markers collected by hand */
    for (uint64_t n = 2; n <= N_PARTS; n++)
        assert_ok(write_part(path, n, &err), &err);
    put_marker(path, 3, 5, "", 0);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "a part of 4 and one of 5");
    free(killed);
    free(path);
}

/* Replaces a text in the marker of a finished part. */
static void change_marker(const char *path, uint64_t part, const char *from, const char *to)
{
    char *marker = part_marker_path(path, part, N_PARTS);
    size_t size = 0;
    char *text = (char *)support_read(marker, &size);
    assert_int_equal(strlen(from), strlen(to));
    char *at = memmem(text, size, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    support_write(marker, text, size);
    free(text);
    free(marker);
}

/* Parts written where they could not see each other, and collected later. */
static void parts_that_disagree_are_not_joined(void **state)
{
    (void)state;
    static const char *const changes[][2] = {{digest, other_digest},
                                             {"\"bytes\": 100", "\"bytes\": 101"}};
    struct phema_error err = {0};
    char *path = support_tmp_path("brought");
    write_parts(path);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        change_marker(path, 3, changes[i][0], changes[i][1]);
        assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err,
                     "part 3 does not go with part 1");
        change_marker(path, 3, changes[i][1], changes[i][0]);
    }
    assert_false(exists(path));
    assert_joined(path);
    free(path);
}

static void a_leftover_of_a_killed_run_is_brought_to_its_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 10, SIZE, 5000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char *path = support_tmp_path("leftover");
        char *partial = with_end(path, ".partial");
        char *old = calloc(1, sizes[i] + 1);
        support_write(partial, old, sizes[i]);
        write_parts(path);
        assert_joined(path);
        assert_int_equal(unlink(path), 0);
        free(old);
        free(partial);
        free(path);
    }
}

static void parts_whose_file_is_gone_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("gone");
    char *partial = with_end(path, ".partial");
    write_parts(path);
    assert_int_equal(truncate(partial, SIZE + 1), 0);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "found 101");
    assert_int_equal(truncate(partial, SIZE - 1), 0);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "expected a file of 100 bytes");
    assert_fails(write_part(path, 2, &err), PHEMA_ERR_OUTPUT, &err, "is not what it has left");
    assert_int_equal(unlink(partial), 0);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "is gone");
    assert_fails(write_part(path, 2, &err), PHEMA_ERR_OUTPUT, &err, "is not what it has left");
    assert_false(exists(partial));
    for (uint64_t part = 1; part <= N_PARTS; part++)
        assert_true(has_marker(path, part, N_PARTS)); /* nothing changed */

    /* while a part is being written */
    char *second = support_tmp_path("gone_too");
    char *second_partial = with_end(second, ".partial");
    struct phema_writer_part_options options = part_of(1, N_PARTS);
    struct phema_writer_part *part = NULL;
    assert_ok(phema_writer_part_open(&part, second, &options, &err), &err);
    assert_int_equal(unlink(second_partial), 0);
    assert_fails(phema_writer_part_finish(part, &err), PHEMA_ERR_OUTPUT, &err, "was removed");
    assert_false(has_marker(second, 1, N_PARTS));
    free(second_partial);
    free(second);
    free(partial);
    free(path);
}

/* Truncated anywhere or replaced by other text, a marker does not report its part as done. */
static void an_incomplete_marker_is_unfinished(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("torn");
    write_parts(path);
    char *marker = part_marker_path(path, 2, N_PARTS);
    size_t size = 0;
    uint8_t *text = support_read(marker, &size);
    for (size_t cut = 0; cut < size - 2; cut++) { /* without "}\n" */
        support_write(marker, text, cut);
        assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 2 is not finished");
    }
    static const char *const strange[] = {
        "[]",
        "{\"done\": true}",
        "{\"done\": true, \"digest\": \"0123456789abcdef\"}",
        "{\"done\": true, \"digest\": \"0123456789abcdef0\", \"files\": [{\"bytes\": 100}]}",
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"files\": []}",
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"files\": [{\"bytes\": -1}]}",
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"files\": [1, 2]}",
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"directory\": true, \"files\": [1]}",
        "{\"done\": 1, \"digest\": \"0123456789abcdef\", \"files\": [{\"bytes\": 100}]}",
        "{\"done\": false, \"digest\": \"0123456789abcdef\", \"files\": [{\"bytes\": 100}]}"};
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        support_write(marker, strange[i], strlen(strange[i]));
        assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 2 is not finished");
    }
    static const char outside[] =
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"directory\": "
        "true, \"files\": [{\"name\": \"../x\", \"bytes\": 1}]}";
    support_write(marker, outside, strlen(outside));
    assert_fails(join(path, &quick, &err), PHEMA_NO, &err, "part 2 is not finished");
    static const char unlike[] =
        "{\"done\": true, \"digest\": \"0123456789abcdef\", \"files\": [{\"bytes\": 99}]}";
    support_write(marker, unlike, strlen(unlike));
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "does not go with");
    support_write(marker, text, size);
    assert_joined(path);
    free(text);
    free(marker);
    free(path);
}

static void an_existing_output_is_kept_unless_replacing(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("existing_output");
    write_parts(path);
    support_write(path, "mine", 4);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "exists already");
    assert_true(has_marker(path, 4, N_PARTS));
    assert_ok(join(path, &forced, &err), &err);
    size_t size = 0;
    free(support_read(path, &size));
    assert_int_equal(size, SIZE);
    free(path);
}

/* Another team has written a part again since the join has read the markers. */
static void join_leaves_markers_of_another_file(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("again");
    struct phema_writer_join *opened = NULL;
    write_parts(path);
    assert_ok(phema_writer_join_open(&opened, path, &quick, &err), &err);
    assert_ok(check(opened, &err), &err);
    change_marker(path, 2, "\"inode\": ", "\"inode\":1");
    char *marker = part_marker_path(path, 3, N_PARTS);
    int descriptor = open(marker, O_RDONLY);
    assert_int_equal(flock(descriptor, LOCK_EX), 0);
    assert_ok(phema_writer_join_commit(opened, &err), &err);
    assert_int_equal(close(descriptor), 0);
    for (uint64_t part = 1; part <= N_PARTS; part++)
        assert_int_equal(has_marker(path, part, N_PARTS), part == 2 || part == 3);
    assert_ok(phema_writer_parts_drop(path, digest, &err), &err);
    assert_true(has_marker(path, 3, N_PARTS)); /* it is in the output: the next join removes it */
    free(marker);
    free(path);
}

/* The sidecar that a copy has, and shares of a checksum that has three places. */
struct copy_share {
    struct phema_writer_part_sum sum;
    struct phema_writer_part_crc crc;
};

static const char sidecar[] = "{\"posthoc_ema.of\": 00000000000000000000000000000000}";

static enum phema_status write_copy_part(const char *path, uint64_t part, struct phema_error *err)
{
    struct copy_share share = {.sum = {19, {.low = part, .high = 1}},
                               .crc = {0, {4, 90, 50}, 3, UINT32_C(0x01020304) << part}};
    struct phema_writer_part_options options = part_of(part, N_PARTS);
    options.sidecar = sidecar;
    options.sums = &share.sum;
    options.crcs = &share.crc;
    options.n_sums = options.n_crcs = 1;
    return write_part_with(path, &options, err);
}

static void a_sidecar_appears_with_its_file(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("copy"), *sidecar_path = with_end(path, ".json");
    for (uint64_t part = N_PARTS; part >= 1; part--)
        assert_ok(write_copy_part(path, part, &err), &err);
    assert_false(exists(sidecar_path));
    support_write(sidecar_path, "{}", 2);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "copy.json: exists already");
    assert_ok(join(path, &forced, &err), &err);

    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    uint32_t crc = 0;
    for (unsigned part = 1; part <= N_PARTS; part++)
        crc ^= UINT32_C(0x01020304) << part;
    static const size_t places[] = {4, 90, 50};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        assert_int_equal(phema_load_u32(data + places[i]), crc);
    free(data);
    data = support_read(sidecar_path, &size);
    static const char joined[] = "{\"posthoc_ema.of\": 0000000000000004000000000000000a}";
    assert_int_equal(size, strlen(joined));
    assert_memory_equal(data, joined, size);
    free(data);
    free(sidecar_path);
    free(path);
}

/* ---- Bytes that change before the join ---- */

/* Four parts of four blocks each, which begin within blocks. */
enum { BLOCK = 4096, LARGE = 4 * N_PARTS * BLOCK - 400 };
static const struct phema_writer_part_file large_file = {NULL, LARGE};

static void write_large_parts(const char *path)
{
    struct phema_error err = {0};
    for (uint64_t part = N_PARTS; part >= 1; part--) {
        struct phema_writer_part_options options = part_of(part, N_PARTS);
        options.files = &large_file;
        assert_ok(write_part_with(path, &options, &err), &err);
    }
}

static void change_byte(const char *path, size_t at)
{
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_true(at < size);
    data[at] ^= 0x80;
    int descriptor = open(path, O_WRONLY);
    assert_int_equal(pwrite(descriptor, data + at, 1, (off_t)at), 1);
    assert_int_equal(close(descriptor), 0);
    free(data);
}

static void bytes_that_changed_are_found(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        const char *parts;
    } changes[] = {{0, "bytes 0 to 4096 are not what part 1 has written"},
                   {LARGE / 2 - 1, "for parts 2, 3,"},
                   {LARGE / 2 + BLOCK, "synth --part 3/4"},
                   {LARGE - 1, "bytes 61440 to 65136 are not what part 4 has written"}};
    struct phema_error err = {0};
    char *path = support_tmp_path("changed"), *partial = with_end(path, ".partial");
    write_large_parts(path);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        change_byte(partial, changes[i].at);
        assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, changes[i].parts);
        assert_false(exists(path));
        assert_true(has_marker(path, 1, N_PARTS));
        change_byte(partial, changes[i].at);
    }
    assert_ok(join(path, &quick, &err), &err);
    free(partial);
    free(path);
}

/* The list of an output, as another process receives it; the caller clears arena. */
static struct phema_writer_check receive(struct phema_arena *arena, struct phema_writer_check *list)
{
    struct phema_error err = {0};
    struct phema_strbuf text = {0};
    struct phema_packer sender = {.out = &text};
    phema_writer_check_pack(list, &sender);
    assert_ok(phema_pack_check(&sender, &err), &err);
    struct phema_writer_check received = {.n_blocks = 0};
    struct phema_packer receiver = {.rest = {(uint8_t *)text.data, text.size}, .arena = arena};
    phema_writer_check_pack(&received, &receiver);
    assert_ok(phema_pack_check(&receiver, &err), &err);
    phema_strbuf_clear(&text);
    return received;
}

/* A process that knows the list alone compares its share, in the file that the path names. */
static void another_process_compares_its_share(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_arena arena = {0};
    struct phema_writer_join *opened = NULL;
    struct phema_writer_check list;
    uint64_t differs[4 * N_PARTS] = {0};
    char *path = support_tmp_path("shared"), *partial = with_end(path, ".partial");
    write_large_parts(path);
    change_byte(partial, (size_t)5 * BLOCK);
    change_byte(partial, (size_t)6 * BLOCK);
    assert_ok(phema_writer_join_open(&opened, path, &quick, &err), &err);
    assert_ok(phema_writer_join_list_blocks(&list, opened, &err), &err);
    assert_int_equal(list.n_blocks, ARRAY_LEN(differs));
    for (uint32_t b = 0; b < list.n_blocks; b++)
        list.blocks[b].share = b % 3;
    struct phema_writer_check received = receive(&arena, &list);
    assert_int_equal(received.descriptor, -1);
    assert_int_equal(received.n_blocks, list.n_blocks);
    assert_ok(phema_writer_check_compare(differs, &received, 2, &err), &err);
    for (size_t b = 0; b < ARRAY_LEN(differs); b++)
        assert_int_equal(differs[b], b == 5);
    assert_fails(phema_writer_join_check(opened, &list, differs, &err), PHEMA_ERR_OUTPUT, &err,
                 "bytes 20480 to 24576 are not what part 2 has written");
    assert_ok(phema_writer_check_compare(differs, &received, 0, &err), &err);
    assert_int_equal(differs[6], 1);
    /* a link is no file of the run */
    char *moved = with_end(path, ".moved");
    assert_int_equal(rename(partial, moved), 0);
    assert_int_equal(symlink(moved, partial), 0);
    assert_fails(phema_writer_check_compare(differs, &received, 0, &err), PHEMA_ERR_OUTPUT, &err,
                 partial);
    assert_int_equal(unlink(partial), 0);
    assert_fails(phema_writer_check_compare(differs, &received, 0, &err), PHEMA_ERR_OUTPUT, &err,
                 "No such file");
    assert_ok(phema_writer_check_compare(differs, &received, 7, &err), &err); /* opens nothing */
    phema_writer_join_abandon(opened);
    phema_arena_clear(&arena);
    free(moved);
    free(partial);
    free(path);
}

static void markers_of_other_blocks_are_refused(void **state)
{
    (void)state;
    static const char *const changes[][3] = {
        {"\"first\": 0", "\"first\": 9", "not what"},
        {"\"block_bytes\": 4096", "\"block_bytes\": 8192", "part 2 does not go with part 1"},
        {"\"block_bytes\": 4096", "\"block_bytes\": 0000", "part 1 is not finished"},
        {"\"crcs\": [", "\"crcs\": 1", "part 1 is not finished"}};
    struct phema_error err = {0};
    char *path = support_tmp_path("blocks");
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        write_large_parts(path);
        change_marker(path, 1, changes[i][0], changes[i][1]);
        enum phema_status status = join(path, &quick, &err);
        assert_true(status == PHEMA_ERR_OUTPUT || status == PHEMA_NO);
        assert_non_null(strstr(err.message, changes[i][2]));
    }
    write_large_parts(path);
    assert_ok(join(path, &quick, &err), &err);
    free(path);
}

static void parts_of_an_earlier_version_are_joined_unchecked(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("earlier");
    struct phema_writer_join *opened = NULL;
    write_parts(path);
    change_marker(path, 3, "\"blocks\"", "\"blockz\"");
    assert_ok(phema_writer_join_open(&opened, path, &quick, &err), &err);
    assert_ok(check(opened, &err), &err);
    assert_int_equal(phema_writer_join_unchecked_part(opened), 3);
    phema_writer_join_abandon(opened);
    assert_joined(path);
    free(path);
}

static void only_markers_are_found(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = support_tmp_path("sweep");
    assert_int_equal(mkdir(directory, 0777), 0);
    static const char *const names[] = {"b.part-1-of-2",         "a.part-2-of-3",
                                        "a.part-1-of-3",         "c.part-0-of-2",
                                        "d.part-3-of-2",         "e.part-1-of-",
                                        "f.part-01-of-2",        "g.part-1-of-2x",
                                        ".part-1-of-2",          "h.part-1",
                                        "i.part-1-of-100000000", "j.part--1-of-2",
                                        "k.part-1of-2",          "l"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *end = with_end("/", names[i]), *path = with_end(directory, end);
        support_write(path, "", 0);
        free(path);
        free(end);
    }
    char **paths = NULL;
    size_t n = 0;
    char *slashed = with_end(directory, "//");
    assert_ok(phema_writer_find_parts(&paths, &n, slashed, &err), &err);
    assert_int_equal(n, 2);
    char *a = with_end(directory, "/a"), *b = with_end(directory, "/b");
    assert_string_equal(paths[0], a);
    assert_string_equal(paths[1], b);
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    assert_ok(phema_writer_find_parts(&paths, &n, a, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(paths[0], a);
    free(paths[0]);
    free(paths);
    char *none = with_end(directory, "/none");
    assert_ok(phema_writer_find_parts(&paths, &n, none, &err), &err);
    assert_int_equal(n, 0);
    free(paths);
    free(none);
    free(a);
    free(b);
    free(slashed);
    free(directory);
}

/* ---- Directories ---- */

static const struct phema_writer_part_file two_files[] = {{"first", 6}, {"second", 4}};

static enum phema_status write_directory_part(const char *path, uint64_t part,
                                              struct phema_error *err)
{
    struct phema_writer_part_options options = {.part = part,
                                                .n_parts = 2,
                                                .digest = digest,
                                                .is_directory = true,
                                                .files = two_files,
                                                .n_files = 2,
                                                .syncs = true};
    struct phema_writer_part *opened = NULL;
    enum phema_status status = phema_writer_part_open(&opened, path, &options, err);
    for (size_t f = 0; f < 2 && !status; f++) {
        struct phema_writer *writer = NULL;
        size_t half = (size_t)two_files[f].size_bytes / 2;
        status = phema_writer_part_file(&writer, opened, f, err);
        if (!status)
            status =
                phema_writer_write(writer, (part - 1) * half, part == 1 ? "111" : "222", half, err);
        if (!status)
            status = phema_writer_commit(writer, err);
        else
            phema_writer_abandon(writer);
    }
    if (!status)
        return phema_writer_part_finish(opened, err);
    phema_writer_part_abandon(opened);
    return status;
}

static void put_inside(const char *directory, const char *name)
{
    char *end = with_end("/", name), *path = with_end(directory, end);
    support_write(path, "x", 1);
    free(path);
    free(end);
}

/* Another process finds a changed byte in the second file. */
static void assert_received_directory(const char *path)
{
    struct phema_error err = {0};
    struct phema_arena arena = {0};
    struct phema_writer_join *opened = NULL;
    struct phema_writer_check list;
    uint64_t differs[2] = {0};
    char *second = with_end(path, ".partial/second");
    assert_ok(phema_writer_join_open(&opened, path, &forced, &err), &err);
    assert_ok(phema_writer_join_list_blocks(&list, opened, &err), &err);
    assert_int_equal(list.n_blocks, 2);
    struct phema_writer_check received = receive(&arena, &list);
    change_byte(second, 3);
    assert_ok(phema_writer_check_compare(differs, &received, 0, &err), &err);
    change_byte(second, 3);
    assert_int_equal(differs[0], 0);
    assert_int_equal(differs[1], 1);
    assert_fails(phema_writer_join_check(opened, &list, differs, &err), PHEMA_ERR_OUTPUT, &err,
                 "shards.partial/second: bytes 0 to 4 are not what part");
    phema_writer_join_abandon(opened);
    phema_arena_clear(&arena);
    free(second);
}

static void directories_are_written_in_parts(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *path = support_tmp_path("shards"), *slashed = with_end(path, "/");
    char *partial = with_end(path, ".partial"), *stranger = with_end(partial, "/stranger");
    struct phema_writer_directory *directory = NULL;
    assert_int_equal(mkdir(partial, 0777), 0);
    put_inside(partial, "stranger"); /* left by a killed run */
    assert_ok(write_directory_part(slashed, 2, &err), &err);
    assert_false(exists(stranger));
    assert_fails(phema_writer_directory_open(&directory, path, &forced, &err), PHEMA_ERR_OUTPUT,
                 &err, "parts are here");
    assert_fails(join(slashed, &quick, &err), PHEMA_NO, &err, "part 1 is not here");
    put_inside(partial, "stranger"); /* belongs to somebody else */
    assert_ok(write_directory_part(path, 1, &err), &err);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "holds 'stranger'");
    assert_int_equal(unlink(stranger), 0);
    assert_received_directory(path);
    assert_ok(join(path, &forced, &err), &err);
    assert_false(exists(partial));
    char *first = with_end(path, "/first"), *second = with_end(path, "/second");
    size_t size = 0;
    uint8_t *data = support_read(first, &size);
    assert_int_equal(size, 6);
    assert_memory_equal(data, "111222", 6);
    free(data);
    data = support_read(second, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(data, "1122", 4);
    free(data);
    /* again, to replace the output */
    assert_ok(write_directory_part(path, 1, &err), &err);
    assert_ok(write_directory_part(path, 2, &err), &err);
    assert_fails(join(path, &quick, &err), PHEMA_ERR_OUTPUT, &err, "exists already");
    assert_ok(join(path, &forced, &err), &err);
    assert_false(exists(partial));
    free(first);
    free(second);
    free(stranger);
    free(partial);
    free(slashed);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_written_at_once_are_joined),
    cmocka_unit_test(a_part_that_is_killed_is_named_and_written_again),
    cmocka_unit_test(an_interrupted_part_removes_its_marker),
    cmocka_unit_test(a_part_has_one_run_at_a_time_and_ordinary_runs_are_refused),
    cmocka_unit_test(parts_of_different_outputs_are_refused),
    cmocka_unit_test(parts_that_disagree_are_not_joined),
    cmocka_unit_test(a_leftover_of_a_killed_run_is_brought_to_its_size),
    cmocka_unit_test(parts_whose_file_is_gone_are_refused),
    cmocka_unit_test(an_incomplete_marker_is_unfinished),
    cmocka_unit_test(an_existing_output_is_kept_unless_replacing),
    cmocka_unit_test(join_leaves_markers_of_another_file),
    cmocka_unit_test(a_sidecar_appears_with_its_file),
    cmocka_unit_test(bytes_that_changed_are_found),
    cmocka_unit_test(another_process_compares_its_share),
    cmocka_unit_test(markers_of_other_blocks_are_refused),
    cmocka_unit_test(parts_of_an_earlier_version_are_joined_unchecked),
    cmocka_unit_test(only_markers_are_found),
    cmocka_unit_test(directories_are_written_in_parts),
};
TEST_GROUP(tests)
