// SPDX-License-Identifier: Apache-2.0
/* A journal returns the appended records up to the first damage. Truncated or changed at any byte,
 * it never returns other records. Other files are left alone. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/writer.h"
#include "support.h"

#define DIGEST "0123456789abcdef"
#define OTHER  "0123456789abcdee"

static const char *const records[] = {"first", "", "the third, which is longer", "4"};

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static enum phema_writer_journal_state look(const char *path, const char *digest)
{
    struct phema_error err = {0};
    enum phema_writer_journal_state state = PHEMA_WRITER_JOURNAL_ABSENT;
    assert_ok(phema_writer_journal_look(&state, path, digest, &err), &err);
    return state;
}

static void append(struct phema_writer_journal *journal, const char *text)
{
    struct phema_error err = {0};
    struct phema_span span = {(const uint8_t *)text, strlen(text)};
    assert_ok(phema_writer_journal_append(journal, span, &err), &err);
}

static struct phema_writer_journal *open_journal(const char *path, bool resumes)
{
    struct phema_error err = {0};
    struct phema_writer_journal *journal = NULL;
    assert_ok(phema_writer_journal_open(&journal, path, DIGEST, resumes, &err), &err);
    return journal;
}

/* A journal with all the records, kept on closing. */
static void make(const char *path)
{
    struct phema_writer_journal *journal = open_journal(path, false);
    for (size_t i = 0; i < ARRAY_LEN(records); i++)
        append(journal, records[i]);
    phema_writer_journal_keep(journal, true);
    phema_writer_journal_close(journal);
}

/* Counts the records, which must be the first ones. */
static size_t count(struct phema_writer_journal *journal)
{
    struct phema_error err = {0};
    struct phema_span span;
    size_t n = 0;
    for (;; n++) {
        assert_ok(phema_writer_journal_next(&span, journal, &err), &err);
        if (!span.data)
            return n;
        assert_true(n < ARRAY_LEN(records) + 1);
        const char *wanted = n < ARRAY_LEN(records) ? records[n] : "after";
        if (span.size == 5 && memcmp(span.data, "after", 5) == 0)
            wanted = "after";
        assert_int_equal(span.size, strlen(wanted));
        assert_memory_equal(span.data, wanted, span.size);
    }
}

static void records_are_read_back_in_order(void **state)
{
    (void)state;
    char *path = support_tmp_path("journal");
    make(path);
    assert_int_equal(look(path, DIGEST), PHEMA_WRITER_JOURNAL_OURS);
    assert_int_equal(look(path, OTHER), PHEMA_WRITER_JOURNAL_OTHER);
    struct phema_writer_journal *journal = open_journal(path, true);
    assert_int_equal(count(journal), ARRAY_LEN(records));
    assert_int_equal(count(journal), 0); /* later reads return nothing */
    append(journal, "after");
    phema_writer_journal_close(journal); /* a resumed journal is kept */
    journal = open_journal(path, true);
    assert_int_equal(count(journal), ARRAY_LEN(records) + 1);
    phema_writer_journal_close(journal);
    phema_writer_journal_remove(path);
    assert_false(is_there(path));
    assert_int_equal(look(path, DIGEST), PHEMA_WRITER_JOURNAL_ABSENT);
    free(path);
}

/* Opens the journal at path, appends a record, and reads all records back. */
static void assert_goes_on(const char *path, size_t n_whole)
{
    struct phema_writer_journal *journal = open_journal(path, true);
    assert_int_equal(count(journal), n_whole);
    append(journal, "after");
    phema_writer_journal_keep(journal, true);
    phema_writer_journal_close(journal);
    journal = open_journal(path, true);
    assert_int_equal(count(journal), n_whole + 1);
    phema_writer_journal_close(journal);
    phema_writer_journal_remove(path);
}

/* Counts the complete records. Each has 8 bytes before and 8 after it, and the first line has
 * 39. */
static size_t n_whole_in(size_t size)
{
    size_t at = 22 + 17, n = 0;
    for (; n < ARRAY_LEN(records); n++) {
        at += 16 + strlen(records[n]);
        if (at > size)
            break;
    }
    return n;
}

static void a_cut_journal_is_valid_up_to_the_cut(void **state)
{
    (void)state;
    char *path = support_tmp_path("cut");
    make(path);
    size_t size = 0;
    uint8_t *whole = support_read(path, &size);
    for (size_t n = 0; n <= size; n++) {
        support_write(path, whole, n);
        assert_goes_on(path, n_whole_in(n));
    }
    free(whole);
    free(path);
}

static void a_changed_byte_ends_the_journal(void **state)
{
    (void)state;
    char *path = support_tmp_path("changed");
    make(path);
    size_t size = 0;
    uint8_t *whole = support_read(path, &size);
    for (size_t at = 22; at < size; at++) { /* an earlier change makes it another file */
        whole[at] ^= 0x10;
        support_write(path, whole, size);
        assert_goes_on(path, at < 39 ? 0 : n_whole_in(at));
        whole[at] ^= 0x10;
    }
    free(whole);
    free(path);
}

static void records_at_other_offsets_are_invalid(void **state)
{
    (void)state;
    char *path = support_tmp_path("moved");
    struct phema_writer_journal *journal = open_journal(path, false);
    append(journal, "first");
    append(journal, "again");
    phema_writer_journal_keep(journal, true);
    phema_writer_journal_close(journal);
    size_t size = 0;
    uint8_t *whole = support_read(path, &size);
    memmove(whole + 39, whole + 39 + 21, 21); /* the second record comes first */
    support_write(path, whole, 39 + 21);
    assert_goes_on(path, 0);
    free(whole);
    free(path);
}

static void a_journal_of_another_output_is_replaced(void **state)
{
    (void)state;
    char *path = support_tmp_path("other");
    struct phema_error err = {0};
    struct phema_writer_journal *journal = NULL;
    make(path);
    assert_ok(phema_writer_journal_open(&journal, path, OTHER, true, &err), &err);
    assert_int_equal(count(journal), 0);
    phema_writer_journal_close(journal); /* new, so closing removes it */
    assert_false(is_there(path));
    make(path);
    journal = open_journal(path, false); /* not resumed */
    assert_int_equal(count(journal), 0);
    phema_writer_journal_close(journal);
    assert_false(is_there(path));
    free(path);
}

static void other_files_stay(void **state)
{
    (void)state;
    static const char *const texts[] = {"mine", "posthoc-ema notes", "\0x"};
    char *path = support_tmp_path("mine"), *link = support_tmp_path("link");
    struct phema_error err = {0};
    struct phema_writer_journal *journal = NULL;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        support_write(path, texts[i], i == 2 ? 2 : strlen(texts[i]));
        for (int resumes = 0; resumes < 2; resumes++)
            assert_fails(phema_writer_journal_open(&journal, path, DIGEST, resumes, &err),
                         PHEMA_ERR_OUTPUT, &err, "found something else");
        phema_writer_journal_remove(path);
        assert_int_equal(look(path, DIGEST), PHEMA_WRITER_JOURNAL_ABSENT);
        assert_true(is_there(path));
    }
    (void)unlink(path);
    make(path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(look(link, DIGEST), PHEMA_WRITER_JOURNAL_ABSENT);
    assert_fails(phema_writer_journal_open(&journal, link, DIGEST, true, &err), PHEMA_ERR_OUTPUT,
                 &err, "found something else");
    phema_writer_journal_remove(link);
    assert_true(is_there(link));
    (void)unlink(link);
    (void)unlink(path);
    free(path);
    free(link);
}

/* A journal after a power failure: its size was stored, but its bytes were not. */
static void zeros_are_a_journal_that_was_begun(void **state)
{
    (void)state;
    char *path = support_tmp_path("zeros");
    static const uint8_t zeros[100];
    support_write(path, zeros, sizeof(zeros));
    assert_goes_on(path, 0);
    free(path);
}

static void a_signal_removes_a_new_journal_until_it_is_kept(void **state)
{
    (void)state;
    char *path = support_tmp_path("signal");
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            phema_cleanup_install_handlers();
            struct phema_writer_journal *journal = open_journal(path, false);
            if (is_kept)
                phema_writer_journal_keep(journal, true);
            (void)raise(SIGTERM);
            _exit(99);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        assert_int_equal(is_there(path), is_kept);
    }
    (void)unlink(path);
    free(path);
}

static void the_journal_of_a_complete_output_is_removed_unless_a_partial_exists(void **state)
{
    (void)state;
    char *output = support_tmp_path("out/"), *path = support_tmp_path("out.journal");
    char *partial = support_tmp_path("out.partial");
    make(path);
    support_write(partial, "", 0);
    phema_writer_journal_remove_of(output);
    assert_true(is_there(path));
    (void)unlink(partial);
    phema_writer_journal_remove_of(output);
    assert_false(is_there(path));
    free(output);
    free(partial);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_are_read_back_in_order),
    cmocka_unit_test(a_cut_journal_is_valid_up_to_the_cut),
    cmocka_unit_test(a_changed_byte_ends_the_journal),
    cmocka_unit_test(records_at_other_offsets_are_invalid),
    cmocka_unit_test(a_journal_of_another_output_is_replaced),
    cmocka_unit_test(other_files_stay),
    cmocka_unit_test(zeros_are_a_journal_that_was_begun),
    cmocka_unit_test(a_signal_removes_a_new_journal_until_it_is_kept),
    cmocka_unit_test(the_journal_of_a_complete_output_is_removed_unless_a_partial_exists),
};
TEST_GROUP(tests)
