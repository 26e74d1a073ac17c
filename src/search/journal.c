// SPDX-License-Identifier: Apache-2.0
/* journal.c - scores.csv: appends scores and recovers them. Every line is appended in one write and
 * synced before the next step, so a killed run loses only its current candidate. */
#include "phema/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "phema/json.h"

#define FIRST   "# posthoc-ema search 1\n"
#define COMMAND "# command "
#define OPTIONS "# options "
#define SERIES  "# snapshots "

/* Thousands of scores; larger files are not journals. */
#define MAX_BYTES ((off_t)16 << 20)

static enum phema_status fail_errno(const struct phema_journal *journal, const char *what,
                                    struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s: %s", journal->path, what, strerror(errno));
}

/* ---- Writing ---- */

/* Appends in one write; a partial write is removed. */
static enum phema_status append(struct phema_journal *journal, const struct phema_strbuf *text,
                                struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(text, err);
    if (status)
        return status;
    ssize_t written = write(journal->file, text->data, text->size);
    if (written != (ssize_t)text->size) {
        if (written >= 0)
            errno = ENOSPC;
        status = fail_errno(journal, "cannot be written", err);
        if (written > 0 && ftruncate(journal->file, journal->size))
            return status; /* the next run finds a truncated line */
        return status;
    }
    journal->size += written;
    return fsync(journal->file) ? fail_errno(journal, "cannot be synced", err) : PHEMA_OK;
}

static void write_header(struct phema_strbuf *out, const struct phema_journal_header *header)
{
    struct phema_json_out json = {.text = out};
    phema_strbuf_puts(out, FIRST COMMAND);
    phema_json_out_string(&json, NULL, header->command);
    phema_strbuf_puts(out, "\n" OPTIONS);
    json.needs_comma = false;
    phema_json_out_string(&json, NULL, header->options);
    phema_strbuf_printf(out, "\n" SERIES "%s\n" JOURNAL_COLUMNS "\n", header->snapshots);
}

static void write_made(struct phema_strbuf *out, struct phema_search_point at, const char *name)
{
    struct phema_json_out json = {.text = out};
    struct phema_name_buffer width, time;
    phema_strbuf_printf(out, JOURNAL_MADE "[%s, %s, ", phema_number_format(&width, at.sigma_rel),
                        phema_number_format(&time, at.time));
    phema_json_out_string(&json, NULL, name);
    phema_strbuf_puts(out, "]\n");
}

/* Empties the file and writes the header and the "# made" lines. */
static enum phema_status restart(struct phema_journal *journal, const struct phema_strbuf *header,
                                 struct phema_error *err)
{
    struct phema_strbuf text = {0};
    phema_strbuf_append(&text, header->data, header->size);
    for (size_t i = 0; i < journal->n_made; i++)
        write_made(&text, journal->made[i].at, journal->made[i].name);
    journal->n = 0;
    journal->size = 0;
    enum phema_status status = PHEMA_OK;
    if (ftruncate(journal->file, 0))
        status = fail_errno(journal, "cannot be emptied", err);
    if (!status)
        status = append(journal, &text, err);
    phema_strbuf_clear(&text);
    return status;
}

PHEMA_FALLIBLE phema_journal_add(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err)
{
    struct phema_name_buffer width, time, value, error;
    struct phema_strbuf line = {0};
    phema_strbuf_printf(
        &line, "%s,%s,%s,%.3f,%s\n", phema_number_format(&width, score->at.sigma_rel),
        phema_number_format(&time, score->at.time),
        isnan(score->score) ? "nan" : phema_number_format(&value, score->score), score->seconds,
        isnan(score->predicted_error) ? "" : phema_number_format(&error, score->predicted_error));
    enum phema_status status = append(journal, &line, err);
    phema_strbuf_clear(&line);
    return status ? status : journal_add_score(journal, score, err);
}

PHEMA_FALLIBLE phema_journal_add_made(struct phema_journal *journal, struct phema_search_point at,
                                      const char *name, struct phema_error *err)
{
    if (phema_journal_has_made(journal, name))
        return PHEMA_OK;
    struct phema_strbuf line = {0};
    write_made(&line, at, name);
    enum phema_status status = append(journal, &line, err);
    phema_strbuf_clear(&line);
    return status ? status : journal_add_made(journal, at, name, strlen(name), err);
}

/* ---- Opening ---- */

/* Refuses links, devices and the files of other users. A link would lead to another file, and
 * opening a device may have effects. */
static enum phema_status check_own(const struct phema_journal *journal, const struct stat *st,
                                   struct phema_error *err)
{
    if (!S_ISREG(st->st_mode))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: is not a regular file; remove it or give another OUT",
                          journal->path);
    if (st->st_uid != geteuid())
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: belongs to user %u, and this search is run by user %u; remove it or "
                          "give another OUT",
                          journal->path, (unsigned)st->st_uid, (unsigned)geteuid());
    return PHEMA_OK;
}

static enum phema_status open_locked(struct phema_journal *journal, struct phema_error *err)
{
    struct stat st;
    enum phema_status status = lstat(journal->path, &st) ? PHEMA_OK : check_own(journal, &st, err);
    if (status)
        return status;
    journal->file = open(journal->path,
                         O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (journal->file < 0)
        return fail_errno(journal, "cannot be opened", err);
    if (fstat(journal->file, &st))
        return fail_errno(journal, "cannot be examined", err);
    status = check_own(journal, &st, err);
    if (status)
        return status;
    if (flock(journal->file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: another search is writing it", journal->path);
    if (fstat(journal->file, &st)) /* its size, now that it is locked */
        return fail_errno(journal, "cannot be examined", err);
    if (st.st_size > MAX_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "%s: expected a file of scores of at most %lld bytes", journal->path,
                          (long long)MAX_BYTES);
    journal->size = st.st_size;
    return PHEMA_OK;
}

static enum phema_status read_whole(struct phema_strbuf *out, const struct phema_journal *journal,
                                    struct phema_error *err)
{
    char buffer[65536];
    for (off_t at = 0; at < journal->size;) {
        ssize_t size = pread(journal->file, buffer, sizeof(buffer), at);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be read: %s", journal->path,
                              size ? strerror(errno) : "it has become shorter");
        phema_strbuf_append(out, buffer, (size_t)size);
        at += size;
    }
    return phema_strbuf_check(out, err);
}

static size_t count_whole_lines(const struct phema_strbuf *text)
{
    const char *end = text->size ? memrchr(text->data, '\n', text->size) : NULL;
    return end ? (size_t)(end - text->data) + 1 : 0;
}

/* True for a file with only a part of this header: its first run was interrupted. */
static bool is_partial_header(const struct phema_strbuf *text, const struct phema_strbuf *header)
{
    return text->size < header->size &&
           (!text->size || memcmp(text->data, header->data, text->size) == 0);
}

/* Discards the scores, but keeps the list of candidates made, so that they can be removed. */
static enum phema_status begin_anew(struct phema_journal *journal,
                                    const struct phema_strbuf *header, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    enum phema_status status = read_whole(&text, journal, err);
    struct phema_span lines = {(const uint8_t *)text.data, count_whole_lines(&text)};
    size_t n_compared = text.size < strlen(FIRST) ? text.size : strlen(FIRST);
    if (!status && n_compared && memcmp(text.data, FIRST, n_compared) != 0)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: holds what no search has written, and is not replaced; remove it "
                            "or give another OUT",
                            journal->path);
    if (!status)
        status = journal_read_made(journal, lines, err);
    phema_strbuf_clear(&text);
    return status ? status : restart(journal, header, err);
}

static enum phema_status recover(struct phema_journal *journal, bool *was_cut,
                                 const struct phema_strbuf *header, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    enum phema_status status = read_whole(&text, journal, err);
    if (!status && is_partial_header(&text, header)) {
        phema_strbuf_clear(&text);
        return restart(journal, header, err);
    }
    size_t whole = count_whole_lines(&text);
    struct phema_span lines = {(const uint8_t *)text.data, whole};
    const struct phema_span wanted = {(const uint8_t *)header->data, header->size};
    if (!status)
        status = journal_check_header(&lines, wanted, err);
    if (status == PHEMA_ERR_INPUTS &&
        journal_has_no_scores((struct phema_span){(const uint8_t *)text.data, whole})) {
        phema_strbuf_clear(&text); /* for example after a mistake in the command: nothing is lost */
        return begin_anew(journal, header, err);
    }
    if (!status)
        status = journal_read_lines(journal, lines, 6, err);
    if (status)
        status = phema_fail_in(err, status, "%s", journal->path);
    if (!status && whole < text.size) {
        *was_cut = true;
        journal->size = (off_t)whole;
        if (ftruncate(journal->file, (off_t)whole))
            status = fail_errno(journal, "cannot be cut", err);
    }
    phema_strbuf_clear(&text);
    return status;
}

PHEMA_FALLIBLE phema_journal_open(struct phema_journal **out, bool *was_cut, const char *path,
                                  const struct phema_journal_header *header, bool begins_anew,
                                  struct phema_error *err)
{
    *was_cut = false;
    struct phema_strbuf text = {0};
    struct phema_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return phema_fail_memory(err);
    journal->file = -1;
    journal->path = strdup(path);
    write_header(&text, header);
    enum phema_status status =
        journal->path ? phema_strbuf_check(&text, err) : phema_fail_memory(err);
    if (!status)
        status = open_locked(journal, err);
    if (!status)
        status =
            begins_anew ? begin_anew(journal, &text, err) : recover(journal, was_cut, &text, err);
    phema_strbuf_clear(&text);
    if (status) {
        phema_journal_close(journal);
        return status;
    }
    *out = journal;
    return PHEMA_OK;
}

void phema_journal_close(struct phema_journal *journal)
{
    if (!journal)
        return;
    if (journal->file >= 0)
        (void)close(journal->file);
    for (size_t i = 0; i < journal->n_made; i++)
        free(journal->made[i].name);
    free(journal->made);
    free(journal->scores);
    free(journal->path);
    free(journal);
}

const struct phema_search_score *phema_journal_scores(const struct phema_journal *journal,
                                                      size_t *n)
{
    *n = journal->n;
    return journal->scores;
}

bool phema_journal_has_made(const struct phema_journal *journal, const char *name)
{
    for (size_t i = 0; i < journal->n_made; i++)
        if (strcmp(journal->made[i].name, name) == 0)
            return true;
    return false;
}

const struct phema_search_made *phema_journal_made(const struct phema_journal *journal, size_t *n)
{
    *n = journal->n_made;
    return journal->made;
}
