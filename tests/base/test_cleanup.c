// SPDX-License-Identifier: Apache-2.0
/* A signal removes partial outputs and nothing else. Each case ends a child that added files to the
 * list. */
#include "phema/cleanup.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define N_FILES 40

struct leftovers {
    char *directory, *files[N_FILES];
};

static void make(struct leftovers *made)
{
    char name[32];
    made->directory = support_tmp_path("made");
    assert_int_equal(mkdir(made->directory, 0700), 0);
    for (int i = 0; i < N_FILES; i++) {
        (void)snprintf(name, sizeof(name), "made/%d.partial", i);
        made->files[i] = support_tmp_path(name);
        support_write(made->files[i], "half", 4);
    }
}

static void clear(struct leftovers *made)
{
    for (int i = 0; i < N_FILES; i++) {
        (void)unlink(made->files[i]);
        free(made->files[i]);
    }
    (void)rmdir(made->directory);
    free(made->directory);
}

static size_t count_left(const struct leftovers *made)
{
    size_t n = 0;
    for (int i = 0; i < N_FILES; i++)
        n += access(made->files[i], F_OK) == 0;
    return n;
}

static void put_on_list(struct phema_cleanup_entry **entries, const struct leftovers *made)
{
    struct phema_error err = {0};
    struct phema_cleanup_entry *directory = NULL;
    /* the directory first, because it can be removed only after its files */
    if (phema_cleanup_add_partial(&directory, made->directory, true, &err))
        _exit(98);
    for (int i = 0; i < N_FILES; i++)
        if (phema_cleanup_add_partial(&entries[i], made->files[i], false, &err))
            _exit(98);
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_signal_removes_partial_outputs_and_then_ends(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t s = 0; s < ARRAY_LEN(signals); s++) {
        struct leftovers made;
        make(&made);
        pid_t child = fork();
        if (child == 0) {
            struct phema_cleanup_entry *entries[N_FILES];
            phema_cleanup_install_handlers();
            put_on_list(entries, &made);
            (void)raise(signals[s]);
            _exit(99);
        }
        int status = wait_for(child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[s]);
        assert_int_equal(count_left(&made), 0);
        assert_int_not_equal(access(made.directory, F_OK), 0);
        clear(&made);
    }
}

/* A held signal waits until the outermost resume, regardless of nested holds. */
static void holds_nest(void **state)
{
    (void)state;
    char *reached = support_tmp_path("reached");
    pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGTERM, SIG_DFL);
        phema_cleanup_install_handlers();
        phema_cleanup_hold();
        (void)raise(SIGTERM);
        phema_cleanup_hold();
        phema_cleanup_resume();
        support_write(reached, "x", 1);
        phema_cleanup_resume();
        _exit(99);
    }
    int status = wait_for(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(unlink(reached), 0);
    free(reached);
}

static void a_file_off_the_list_stays(void **state)
{
    (void)state;
    struct leftovers made;
    make(&made);
    pid_t child = fork();
    if (child == 0) {
        struct phema_cleanup_entry *entries[N_FILES];
        phema_cleanup_install_handlers();
        put_on_list(entries, &made);
        for (int i = 0; i < N_FILES; i += 2)
            phema_cleanup_remove(entries[i]);
        phema_cleanup_remove(NULL);
        (void)raise(SIGTERM);
        _exit(99);
    }
    assert_true(WIFSIGNALED(wait_for(child)));
    for (int i = 0; i < N_FILES; i++)
        assert_int_equal(access(made.files[i], F_OK) == 0, i % 2 == 0);
    assert_int_equal(access(made.directory, F_OK), 0); /* not empty */
    clear(&made);
}

/* Entries are reused after removal: the old path must not reappear. */
static void a_reused_entry_names_only_the_new_file(void **state)
{
    (void)state;
    struct leftovers made;
    make(&made);
    pid_t child = fork();
    if (child == 0) {
        struct phema_error err = {0};
        struct phema_cleanup_entry *entry = NULL;
        phema_cleanup_install_handlers();
        for (int i = 0; i < N_FILES; i++) {
            if (phema_cleanup_add_partial(&entry, made.files[i], false, &err))
                _exit(98);
            if (i + 1 < N_FILES)
                phema_cleanup_remove(entry);
        }
        (void)raise(SIGTERM);
        _exit(99);
    }
    assert_true(WIFSIGNALED(wait_for(child)));
    assert_int_equal(count_left(&made), N_FILES - 1);
    assert_int_not_equal(access(made.files[N_FILES - 1], F_OK), 0);
    clear(&made);
}

/* nohup: signals that the parent ignores stay ignored. */
static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    struct leftovers made;
    make(&made);
    pid_t child = fork();
    if (child == 0) {
        struct phema_cleanup_entry *entries[N_FILES];
        (void)signal(SIGHUP, SIG_IGN);
        phema_cleanup_install_handlers();
        put_on_list(entries, &made);
        (void)raise(SIGHUP);
        _exit(42);
    }
    int status = wait_for(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_int_equal(count_left(&made), N_FILES);
    clear(&made);
}

/* A bus error outside mapped files gets no explanation. */
static void another_bus_error_ends_by_that_signal(void **state)
{
    (void)state;
    struct leftovers made;
    make(&made);
    pid_t child = fork();
    if (child == 0) {
        struct phema_cleanup_entry *entries[N_FILES];
        phema_cleanup_install_handlers();
        put_on_list(entries, &made);
        (void)raise(SIGBUS);
        _exit(99);
    }
    int status = wait_for(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_int_equal(count_left(&made), 0);
    clear(&made);
}

static void *add_and_remove(void *path)
{
    struct phema_error err = {0};
    for (int i = 0; i < 2000; i++) {
        struct phema_cleanup_entry *entry = NULL;
        if (phema_cleanup_add_partial(&entry, path, false, &err))
            return path;
        phema_cleanup_remove(entry);
    }
    return NULL;
}

/* Threads that add and remove entries do not lose entries of other threads. */
static void threads_do_not_lose_each_others_entries(void **state)
{
    (void)state;
    struct leftovers made;
    make(&made);
    pid_t child = fork();
    if (child == 0) {
        struct phema_cleanup_entry *entries[N_FILES];
        pthread_t threads[4];
        void *failed = NULL;
        phema_cleanup_install_handlers();
        for (size_t t = 0; t < ARRAY_LEN(threads); t++)
            if (pthread_create(&threads[t], NULL, add_and_remove, made.files[0]))
                _exit(98);
        put_on_list(entries, &made);
        for (size_t t = 0; t < ARRAY_LEN(threads); t++)
            if (pthread_join(threads[t], &failed) || failed)
                _exit(98);
        (void)raise(SIGTERM);
        _exit(99);
    }
    assert_true(WIFSIGNALED(wait_for(child)));
    assert_int_equal(count_left(&made), 0);
    clear(&made);
}

#define N_READERS 4

static pthread_barrier_t readers_start;

static void *read_page(void *page)
{
    (void)pthread_barrier_wait(&readers_start);
    phema_cleanup_touch(page, 1);
    return NULL;
}

static void read_a_cut_file_by_threads(const char *path, int stderr_pipe)
{
    struct phema_error err = {0};
    struct phema_cleanup_entry *entry = NULL;
    pthread_t threads[N_READERS];
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open(path, O_RDWR);
    if (fd < 0 || ftruncate(fd, (off_t)size) || dup2(stderr_pipe, STDERR_FILENO) < 0)
        _exit(98);
    void *page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED || ftruncate(fd, 0) ||
        phema_cleanup_add_map(&entry, (struct phema_span){page, size}, path, false, &err))
        _exit(98);
    phema_cleanup_install_handlers();
    if (pthread_barrier_init(&readers_start, NULL, N_READERS))
        _exit(98);
    for (size_t t = 0; t < N_READERS; t++)
        if (pthread_create(&threads[t], NULL, read_page, page))
            _exit(98);
    (void)pthread_join(threads[0], NULL);
    _exit(99);
}

/* Several threads read a file when it is cut: it is named once. */
static void a_cut_file_is_named_once(void **state)
{
    (void)state;
    char *path = support_tmp_path("cut");
    support_write(path, "x", 1);
    for (int i = 0; i < 50; i++) {
        int ends[2];
        char text[1000], expected[1000];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0)
            read_a_cut_file_by_threads(path, ends[1]);
        int status = wait_for(child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), PHEMA_ERR_FILE);
        (void)close(ends[1]);
        ssize_t size = read(ends[0], text, sizeof(text) - 1);
        assert_true(size > 0);
        text[size] = '\0';
        (void)snprintf(expected, sizeof(expected),
                       "posthoc-ema: %s: the file was cut short, or its disk failed, while it was "
                       "being read; nothing was written\n",
                       path);
        assert_string_equal(text, expected);
        (void)close(ends[0]);
    }
    (void)unlink(path);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_signal_removes_partial_outputs_and_then_ends),
    cmocka_unit_test(holds_nest),
    cmocka_unit_test(a_file_off_the_list_stays),
    cmocka_unit_test(a_reused_entry_names_only_the_new_file),
    cmocka_unit_test(an_ignored_signal_stays_ignored),
    cmocka_unit_test(another_bus_error_ends_by_that_signal),
    cmocka_unit_test(threads_do_not_lose_each_others_entries),
    cmocka_unit_test(a_cut_file_is_named_once),
};
TEST_GROUP(tests)
