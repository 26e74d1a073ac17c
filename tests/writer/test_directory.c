// SPDX-License-Identifier: Apache-2.0
/* A directory of files appears whole or not at all, and the files of others are never removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "directory.h"
#include "paths.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "support.h"

static const struct phema_writer_options quick = {0};
static const struct phema_writer_options durable = {.syncs = true};
static const struct phema_writer_options forced = {.replaces = true, .syncs = true};

/* Paths in a directory of the test, which is empty at first. */
struct place {
    char *path, *partial, *aside;
};

static struct place make_place(const char *name)
{
    struct place place = {.path = support_tmp_path(name)};
    place.partial = with_end(place.path, ".partial");
    place.aside = with_end(place.path, ".replaced");
    return place;
}

static void clear_place(struct place *place)
{
    assert_false(exists(place->partial));
    assert_false(exists(place->aside));
    free(place->path);
    free(place->partial);
    free(place->aside);
}

static void put_file(const char *directory, const char *name, const char *content)
{
    char *end = with_end("/", name);
    char *path = with_end(directory, end);
    support_write(path, content, strlen(content));
    free(path);
    free(end);
}

static void assert_file(const char *directory, const char *name, const char *content)
{
    char *end = with_end("/", name);
    char *path = with_end(directory, end);
    size_t size = 0;
    uint8_t *data = support_read(path, &size);
    assert_int_equal(size, strlen(content));
    assert_memory_equal(data, content, size);
    free(data);
    free(path);
    free(end);
}

static size_t count_entries(const char *directory)
{
    size_t n = 0;
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    while (readdir(stream))
        n++;
    (void)closedir(stream);
    return n - 2;
}

static struct phema_writer_directory *open_place(const struct place *place,
                                                 const struct phema_writer_options *options)
{
    struct phema_error err = {0};
    struct phema_writer_directory *directory = NULL;
    assert_ok(phema_writer_directory_open(&directory, place->path, options, &err), &err);
    return directory;
}

static void add(struct phema_writer_directory *directory, const char *name, const char *content)
{
    struct phema_error err = {0};
    struct phema_writer *writer = NULL;
    size_t size = strlen(content);
    assert_ok(phema_writer_directory_add(&writer, directory, name, NULL, size, &err), &err);
    assert_ok(phema_writer_write(writer, 0, content, size, &err), &err);
    assert_ok(phema_writer_commit(writer, &err), &err);
}

static void refuse(const struct place *place, const struct phema_writer_options *options,
                   const char *part)
{
    struct phema_error err = {0};
    struct phema_writer_directory *directory = NULL;
    assert_fails(phema_writer_directory_open(&directory, place->path, options, &err),
                 PHEMA_ERR_OUTPUT, &err, part);
    assert_null(directory);
    assert_ptr_equal(strstr(err.message, place->path), err.message);
}

static void commit_publishes_all_files_at_once(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("model");
    char *source = support_tmp_path("config.json");
    support_write(source, "{}", 2);
    char *with_slash = with_end(place.path, "//");
    struct phema_writer_directory *directory = NULL;
    assert_ok(phema_writer_directory_open(&directory, with_slash, &durable, &err), &err);
    struct phema_writer *first = NULL;
    struct phema_writer *second = NULL;
    assert_ok(phema_writer_directory_add(&first, directory, "1", NULL, 3, &err), &err);
    assert_ok(phema_writer_directory_add(&second, directory, "2", NULL, 2, &err), &err);
    assert_ok(phema_writer_directory_copy_file(directory, "config.json", source, &err), &err);
    assert_ok(phema_writer_write(second, 0, "[]", 2, &err), &err);
    assert_ok(phema_writer_write(first, 0, "one", 3, &err), &err);
    assert_ok(phema_writer_commit(first, &err), &err);
    assert_ok(phema_writer_commit(second, &err), &err);
    assert_false(exists(place.path));
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_int_equal(count_entries(place.path), 3);
    assert_file(place.path, "1", "one");
    assert_file(place.path, "2", "[]");
    assert_file(place.path, "config.json", "{}");
    free(with_slash);
    free(source);
    clear_place(&place);
}

static void abandon_leaves_nothing(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("abandoned");
    struct phema_writer_directory *directory = open_place(&place, &quick);
    add(directory, "whole", "whole");
    struct phema_writer *half = NULL;
    assert_ok(phema_writer_directory_add(&half, directory, "half", NULL, 100, &err), &err);
    assert_int_equal(count_entries(place.partial), 2);
    phema_writer_abandon(half);
    assert_int_equal(count_entries(place.partial), 1);
    phema_writer_directory_abandon(directory);
    phema_writer_directory_abandon(NULL);
    assert_false(exists(place.path));
    clear_place(&place);
}

static void names_of_files_stay_inside_and_are_used_once(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", "a/b", "../a", "/a"};
    struct phema_error err = {0};
    struct place place = make_place("names");
    struct phema_writer_directory *directory = open_place(&place, &quick);
    struct phema_writer *writer = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_fails(phema_writer_directory_add(&writer, directory, names[i], NULL, 1, &err),
                     PHEMA_ERR_OUTPUT, &err, "expected the name of a file");
    add(directory, "once", "first");
    assert_fails(phema_writer_directory_add(&writer, directory, "once", NULL, 1, &err),
                 PHEMA_ERR_OUTPUT, &err, "names/once: cannot be written");
    assert_null(writer);
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_file(place.path, "once", "first");
    clear_place(&place);
}

/* A directory with folders is this program's own where it has a provenance. */
static void folders_are_written_replaced_and_removed(void **state)
{
    (void)state;
    static const struct phema_writer_options with_folders = {.syncs = true, .has_folders = true};
    static const struct phema_writer_options replacing = {
        .replaces = true, .syncs = true, .has_folders = true};
    static const char *const names[] = {"a/",   "a//b", "a/../b",
                                        "../a", "/a",   "1/2/3/4/5/6/7/8/9/x"};
    struct phema_error err = {0};
    struct place place = make_place("folders");
    struct phema_writer_directory *directory = open_place(&place, &with_folders);
    struct phema_writer *writer = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_fails(phema_writer_directory_add(&writer, directory, names[i], NULL, 1, &err),
                     PHEMA_ERR_OUTPUT, &err, "expected the name of a file");
    add(directory, "a/b/one", "1");
    add(directory, "a/two", "2");
    phema_writer_directory_abandon(directory);
    assert_false(exists(place.path));
    assert_false(exists(place.partial));

    directory = open_place(&place, &with_folders);
    add(directory, "a/b/one", "1");
    add(directory, "top", "0");
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_file(place.path, "a/b/one", "1");
    refuse(&place, &replacing, "holds 'a', which is not a regular file");
    refuse(&place, &forced, "holds 'a', which is not a regular file");
    put_file(place.path, PHEMA_PROVENANCE_FILE, "{}");
    refuse(&place, &forced, "holds 'a', which is not a regular file");
    refuse(&place, &with_folders, "exists already; --force replaces it");
    directory = open_place(&place, &replacing);
    add(directory, "c/three", "3");
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_file(place.path, "c/three", "3");
    assert_int_equal(count_entries(place.path), 1);

    char *link = with_end(place.path, "/link");
    put_file(place.path, PHEMA_PROVENANCE_FILE, "{}");
    assert_int_equal(symlink("/", link), 0);
    refuse(&place, &replacing, "holds 'link', which is not a regular file");
    free(link);
    clear_place(&place);
}

/* A killed run leaves its folders. Those of another program or user stay. */
static void leftover_folders_are_taken_over(void **state)
{
    (void)state;
    static const struct phema_writer_options with_folders = {.has_folders = true};
    struct phema_error err = {0};
    struct place place = make_place("folders_left");
    char *folder = with_end(place.partial, "/a");
    assert_int_equal(mkdir(place.partial, 0700), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    put_file(place.partial, "a/old", "old");
    refuse(&place, &with_folders, "holds 'a', which is not a regular file");
    put_file(place.partial, PHEMA_PROVENANCE_FILE, "{}");
    refuse(&place, &quick, "holds 'a', which is not a regular file");
    if (geteuid() == 0) { /* only root gives folders away */
        assert_int_equal(chown(folder, 65534, 65534), 0);
        refuse(&place, &with_folders, "holds 'a', which belongs to user 65534");
        assert_int_equal(chown(folder, 0, 0), 0);
    }
    struct phema_writer_directory *directory = open_place(&place, &with_folders);
    assert_int_equal(count_entries(place.partial), 0);
    add(directory, "a/new", "new");
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_file(place.path, "a/new", "new");
    free(folder);
    clear_place(&place);
}

static void an_empty_directory_may_be_replaced(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("empty");
    assert_int_equal(mkdir(place.path, 0700), 0);
    struct phema_writer_directory *directory = open_place(&place, &quick);
    add(directory, "new", "new");
    assert_int_equal(count_entries(place.path), 0);
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_file(place.path, "new", "new");
    clear_place(&place);
}

static void a_directory_of_files_is_replaced_only_when_asked_to(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("files");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "old", "old");
    put_file(place.path, "both", "old");
    refuse(&place, &quick, "exists already; --force replaces it");
    assert_fails(phema_writer_directory_check(place.path, false, false, &err), PHEMA_ERR_OUTPUT,
                 &err, "exists already");
    assert_ok(phema_writer_directory_check(place.path, true, false, &err), &err);

    struct phema_writer_directory *directory = open_place(&place, &forced);
    add(directory, "both", "new");
    assert_file(place.path, "both", "old");
    phema_writer_directory_abandon(directory);
    assert_int_equal(count_entries(place.path), 2);

    directory = open_place(&place, &forced);
    add(directory, "both", "new");
    assert_ok(phema_writer_directory_commit(directory, &err), &err);
    assert_int_equal(count_entries(place.path), 1);
    assert_file(place.path, "both", "new");
    clear_place(&place);
}

static void a_directory_with_other_entries_is_never_replaced(void **state)
{
    (void)state;
    struct place place = make_place("mixed");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "file", "kept");
    char *inner = with_end(place.path, "/inner");
    assert_int_equal(mkdir(inner, 0700), 0);
    refuse(&place, &forced, "holds 'inner', which is not a regular file");
    refuse(&place, &quick, "exists already");
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(symlink("file", inner), 0);
    refuse(&place, &forced, "holds 'inner'");
    assert_file(place.path, "file", "kept");

    struct place link = make_place("link");
    assert_int_equal(symlink(place.path, link.path), 0);
    refuse(&link, &forced, "is not a directory");
    struct place file = make_place("file");
    support_write(file.path, "x", 1);
    refuse(&file, &forced, "is not a directory");
    struct place here = make_place(".");
    refuse(&here, &forced, "expected the name of a directory");
    struct place missing = make_place("no/such");
    refuse(&missing, &forced, "cannot be made");
    struct place *places[] = {&place, &link, &file, &here, &missing};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        clear_place(places[i]);
    free(inner);
}

static void a_directory_that_appears_meanwhile_is_kept(void **state)
{
    (void)state;
    struct phema_error err = {0};
    for (int is_file = 0; is_file < 2; is_file++) {
        struct place place = make_place(is_file ? "race-file" : "race");
        struct phema_writer_directory *directory = open_place(&place, is_file ? &forced : &quick);
        add(directory, "mine", "mine");
        if (is_file) {
            support_write(place.path, "theirs", 6);
        } else {
            assert_int_equal(mkdir(place.path, 0700), 0);
            put_file(place.path, "theirs", "theirs");
        }
        assert_fails(phema_writer_directory_commit(directory, &err), PHEMA_ERR_OUTPUT, &err,
                     "appeared while this run was writing");
        if (!is_file) {
            assert_int_equal(count_entries(place.path), 1);
            assert_file(place.path, "theirs", "theirs");
        }
        clear_place(&place);
    }
}

/* The old directory got a subdirectory during the writing of the new one. Its contents are kept. */
static void an_old_directory_that_cannot_be_removed_is_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("grown");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "old", "old");
    struct phema_writer_directory *directory = open_place(&place, &forced);
    add(directory, "new", "new");
    char *inner = with_end(place.path, "/inner");
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_fails(phema_writer_directory_commit(directory, &err), PHEMA_ERR_OUTPUT, &err,
                 "grown: is in place, but what it replaced is left: ");
    assert_int_equal(count_entries(place.path), 1);
    assert_file(place.path, "new", "new");
    assert_file(place.partial, "old", "old");

    /* the next run keeps it too */
    refuse(&place, &forced, "grown.partial: holds 'inner'");
    assert_file(place.partial, "old", "old");
    free(inner);
    inner = with_end(place.partial, "/inner");
    assert_int_equal(rmdir(inner), 0);
    directory = open_place(&place, &forced);
    phema_writer_directory_abandon(directory);
    assert_file(place.path, "new", "new");
    free(inner);
    clear_place(&place);
}

static void a_second_run_is_refused_and_a_leftover_taken_over(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct place place = make_place("busy");
    struct phema_writer_directory *first = open_place(&place, &quick);
    add(first, "first", "first");
    refuse(&place, &quick, "another run is writing it");
    assert_file(place.partial, "first", "first");
    phema_writer_directory_abandon(first);

    assert_int_equal(mkdir(place.partial, 0700), 0);
    put_file(place.partial, "leftover", "of a killed run");
    put_file(place.partial, "second", "of a killed run, too");
    struct phema_writer_directory *second = open_place(&place, &quick);
    add(second, "second", "second");
    assert_ok(phema_writer_directory_commit(second, &err), &err);
    assert_int_equal(count_entries(place.path), 1);
    assert_file(place.path, "second", "second");

    struct place odd = make_place("odd");
    support_write(odd.partial, "a file", 6);
    refuse(&odd, &quick, "odd.partial: is not a directory");
    assert_int_equal(unlink(odd.partial), 0);
    assert_int_equal(symlink(place.path, odd.partial), 0);
    refuse(&odd, &quick, "odd.partial: is not a directory");
    assert_int_equal(unlink(odd.partial), 0);
    assert_file(place.path, "second", "second");
    clear_place(&odd);
    clear_place(&place);
}

/* The way for filesystems that cannot exchange directories. */
static void moving_aside_is_all_or_nothing(void **state)
{
    (void)state;
    struct place place = make_place("moved");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "old", "old");
    assert_int_equal(directory_move_aside(place.path, place.partial, place.aside), -1);
    assert_int_equal(errno, ENOENT);
    assert_file(place.path, "old", "old");
    assert_int_equal(mkdir(place.partial, 0700), 0);
    put_file(place.partial, "new", "new");
    assert_int_equal(directory_move_aside(place.path, place.partial, place.aside), 0);
    assert_file(place.path, "new", "new");
    assert_file(place.aside, "old", "old");
    assert_false(exists(place.partial));
    assert_int_equal(mkdir(place.partial, 0700), 0); /* the place aside is occupied */
    assert_int_equal(directory_move_aside(place.path, place.partial, place.aside), -1);
    assert_file(place.path, "new", "new");
    assert_int_equal(rmdir(place.partial), 0);
    char *old = with_end(place.aside, "/old");
    assert_int_equal(unlink(old), 0);
    assert_int_equal(rmdir(place.aside), 0);
    free(old);
    clear_place(&place);
}

/* A child that has written one file completely and one half. */
static void write_some(const struct place *place)
{
    struct phema_error err = {0};
    struct phema_writer_directory *directory = NULL;
    struct phema_writer *whole = NULL;
    struct phema_writer *half = NULL;
    if (phema_writer_directory_open(&directory, place->path, &forced, &err) ||
        phema_writer_directory_add(&whole, directory, "whole", NULL, 2, &err) ||
        phema_writer_commit(whole, &err) ||
        phema_writer_directory_add(&half, directory, "half", NULL, 1000, &err))
        _exit(90);
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_signal_removes_the_partial_directory(void **state)
{
    (void)state;
    struct place place = make_place("killed");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "old", "old");
    pid_t child = fork();
    if (child == 0) {
        phema_cleanup_install_handlers();
        write_some(&place);
        (void)raise(SIGTERM);
        _exit(91);
    }
    int status = wait_for(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_false(exists(place.partial));
    assert_int_equal(count_entries(place.path), 1);

    /* after SIGKILL the next run replaces the leftovers */
    child = fork();
    if (child == 0) {
        write_some(&place);
        (void)raise(SIGKILL);
        _exit(91);
    }
    assert_true(WIFSIGNALED(wait_for(child)));
    assert_int_equal(count_entries(place.partial), 2);
    phema_writer_directory_abandon(open_place(&place, &forced));
    assert_file(place.path, "old", "old");
    clear_place(&place);
}

static void after_publishing_a_signal_removes_nothing(void **state)
{
    (void)state;
    struct place place = make_place("published");
    pid_t child = fork();
    if (child == 0) {
        struct phema_error err = {0};
        phema_cleanup_install_handlers();
        struct phema_writer_directory *directory = open_place(&place, &quick);
        add(directory, "whole", "whole");
        if (phema_writer_directory_commit(directory, &err))
            _exit(90);
        (void)raise(SIGTERM);
        _exit(91);
    }
    assert_true(WIFSIGNALED(wait_for(child)));
    assert_file(place.path, "whole", "whole");
    clear_place(&place);
}

static void a_limit_on_sizes_is_reported_with_the_needed_size(void **state)
{
    (void)state;
    struct place place = make_place("limited");
    pid_t child = fork();
    if (child == 0) {
        struct phema_error err = {0};
        struct phema_writer_directory *directory = open_place(&place, &quick);
        struct phema_writer *writer = NULL;
        const struct rlimit limit = {1 << 20, 1 << 20};
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) ||
            phema_writer_directory_add(&writer, directory, "large", NULL, 3 << 20, &err) !=
                PHEMA_ERR_OUTPUT ||
            count_entries(place.partial) != 0)
            _exit(91);
        phema_writer_directory_abandon(directory);
        _exit(strstr(err.message, "limited/large: ") && strstr(err.message, "3.00 MiB are needed")
                  ? 42
                  : 92);
    }
    int status = wait_for(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    clear_place(&place);
}

static void without_permission_nothing_is_begun(void **state)
{
    (void)state;
    if (geteuid() == 0) /* root is never refused */
        skip();
    struct place place = make_place("closed");
    assert_int_equal(mkdir(place.path, 0700), 0);
    put_file(place.path, "old", "old");
    assert_int_equal(chmod(place.path, 0500), 0);
    refuse(&place, &forced, "cannot be emptied");
    assert_int_equal(chmod(place.path, 0700), 0);
    clear_place(&place);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(commit_publishes_all_files_at_once),
    cmocka_unit_test(abandon_leaves_nothing),
    cmocka_unit_test(names_of_files_stay_inside_and_are_used_once),
    cmocka_unit_test(folders_are_written_replaced_and_removed),
    cmocka_unit_test(leftover_folders_are_taken_over),
    cmocka_unit_test(an_empty_directory_may_be_replaced),
    cmocka_unit_test(a_directory_of_files_is_replaced_only_when_asked_to),
    cmocka_unit_test(a_directory_with_other_entries_is_never_replaced),
    cmocka_unit_test(a_directory_that_appears_meanwhile_is_kept),
    cmocka_unit_test(an_old_directory_that_cannot_be_removed_is_named),
    cmocka_unit_test(a_second_run_is_refused_and_a_leftover_taken_over),
    cmocka_unit_test(moving_aside_is_all_or_nothing),
    cmocka_unit_test(a_signal_removes_the_partial_directory),
    cmocka_unit_test(after_publishing_a_signal_removes_nothing),
    cmocka_unit_test(a_limit_on_sizes_is_reported_with_the_needed_size),
    cmocka_unit_test(without_permission_nothing_is_begun),
};
TEST_GROUP(tests)
