// SPDX-License-Identifier: Apache-2.0
/* journal.c - scores.csv: appends scores and reads them back. Every line is appended in one write
 * and synced before the next step, so a killed run loses only its current candidate. */
#include "journal_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/json.h"
#include "phema/number.h"

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
static enum phema_status append_unsynced(struct phema_journal *journal,
                                         const struct phema_strbuf *text, struct phema_error *err)
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
    return PHEMA_OK;
}

static enum phema_status append(struct phema_journal *journal, const struct phema_strbuf *text,
                                struct phema_error *err)
{
    enum phema_status status = append_unsynced(journal, text, err);
    if (!status && fsync(journal->file))
        status = fail_errno(journal, "cannot be synced", err);
    return status;
}

static void write_header(struct phema_strbuf *out, const struct phema_journal_header *header)
{
    struct phema_json_out json = {.text = out};
    phema_strbuf_puts(out, FIRST COMMAND);
    phema_json_out_string(&json, NULL, header->command);
    phema_strbuf_puts(out, "\n" OPTIONS);
    json.needs_comma = false;
    phema_json_out_string(&json, NULL, header->options);
    phema_strbuf_printf(out, "\n" SERIES "%s\n%s" COLUMNS "\n", header->snapshots,
                        journal_first_column(header->is_line));
}

/* The newest snapshot is 0, or null beside lambdas. */
static void write_made(struct phema_strbuf *out, const struct phema_journal *journal,
                       struct phema_search_point at, const char *name)
{
    const char *newest = journal->is_line ? "null" : "0";
    struct phema_json_out json = {.text = out};
    struct phema_name_buffer width, time;
    phema_strbuf_printf(out, MADE "[%s, %s, ",
                        phema_search_is_newest(at) ? newest
                                                   : phema_number_format(&width, at.sigma_rel),
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
        write_made(&text, journal, journal->made[i].at, journal->made[i].name);
    journal->size = 0;
    enum phema_status status = ftruncate(journal->file, 0)
                                   ? fail_errno(journal, "cannot be emptied", err)
                                   : append(journal, &text, err);
    phema_strbuf_clear(&text);
    return status;
}

PHEMA_FALLIBLE phema_journal_add(struct phema_journal *journal,
                                 const struct phema_search_score *score, struct phema_error *err)
{
    struct phema_name_buffer width, time, value, error;
    struct phema_strbuf line = {0};
    phema_strbuf_printf(
        &line, "%s,%s,%s,%.3f,%s\n",
        phema_search_is_newest(score->at) ? PHEMA_NEWEST_WIDTH
                                          : phema_number_format(&width, score->at.sigma_rel),
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
    write_made(&line, journal, at, name);
    enum phema_status status = append(journal, &line, err);
    phema_strbuf_clear(&line);
    return status ? status : journal_keep_made(journal, at, name, err);
}

PHEMA_FALLIBLE phema_journal_remove_made(struct phema_journal *journal, const char *name,
                                         struct phema_error *err)
{
    struct phema_strbuf line = {0};
    struct phema_json_out json = {.text = &line};
    phema_strbuf_puts(&line, REMOVED "[");
    phema_json_out_string(&json, NULL, name);
    phema_strbuf_puts(&line, "]\n");
    enum phema_status status = append_unsynced(journal, &line, err); /* the next line syncs it */
    phema_strbuf_clear(&line);
    if (!status)
        journal_drop_made(journal, name);
    return status;
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
        ssize_t size = TEMP_FAILURE_RETRY(pread(journal->file, buffer, sizeof(buffer), at));
        if (size <= 0)
            return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be read: %s", journal->path,
                              size ? strerror(errno) : "it has become shorter");
        phema_strbuf_append(out, buffer, (size_t)size);
        at += size;
    }
    return phema_strbuf_check(out, err);
}

static struct phema_span whole_lines(const struct phema_strbuf *text)
{
    const char *end = text->size ? memrchr(text->data, '\n', text->size) : NULL;
    return (struct phema_span){(const uint8_t *)text->data,
                               end ? (size_t)(end - text->data) + 1 : 0};
}

/* True for a file with only a part of this header: its first run was interrupted. */
static bool is_partial_header(const struct phema_strbuf *text, const struct phema_strbuf *header)
{
    return text->size < header->size &&
           (!text->size || memcmp(text->data, header->data, text->size) == 0);
}

/* Discards the scores, but keeps the list of candidates made, so that they can be removed. */
static enum phema_status begin_anew(struct phema_journal *journal, const struct phema_strbuf *text,
                                    const struct phema_strbuf *header, struct phema_error *err)
{
    size_t n_compared = text->size < strlen(FIRST) ? text->size : strlen(FIRST);
    if (n_compared && memcmp(text->data, FIRST, n_compared) != 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: holds what no search has written, and is not replaced; remove it or "
                          "give another OUT",
                          journal->path);
    enum phema_status status = journal_read_made_lines(journal, whole_lines(text), err);
    return status ? status : restart(journal, header, err);
}

static enum phema_status recover(struct phema_journal *journal, bool *was_cut,
                                 const struct phema_strbuf *text, const struct phema_strbuf *header,
                                 struct phema_error *err)
{
    if (is_partial_header(text, header))
        return restart(journal, header, err);
    const struct phema_span whole = whole_lines(text);
    const struct phema_span wanted = {(const uint8_t *)header->data, header->size};
    struct phema_span lines = whole;
    enum phema_status status = journal_check_header(&lines, wanted, err);
    if (status == PHEMA_ERR_INPUTS &&
        journal_has_no_scores(whole)) /* nothing is lost, for example after a
                                                             * mistake in the command */
        return begin_anew(journal, text, header, err);
    if (!status)
        status = journal_read_lines(journal, lines, err);
    if (status)
        return phema_fail_in(err, status, "%s", journal->path);
    *was_cut = whole.size < text->size;
    journal->size = (off_t)whole.size;
    if (*was_cut && ftruncate(journal->file, journal->size))
        return fail_errno(journal, "cannot be cut", err);
    return PHEMA_OK;
}

static enum phema_status load(struct phema_journal *journal, bool *was_cut,
                              struct phema_strbuf *text, const struct phema_strbuf *header,
                              bool begins_anew, struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(header, err);
    if (status)
        return status;
    status = open_locked(journal, err);
    if (status)
        return status;
    status = read_whole(text, journal, err);
    if (status)
        return status;
    return begins_anew ? begin_anew(journal, text, header, err)
                       : recover(journal, was_cut, text, header, err);
}

PHEMA_FALLIBLE phema_journal_open(struct phema_journal **out, bool *was_cut, const char *path,
                                  const struct phema_journal_header *header, bool begins_anew,
                                  struct phema_error *err)
{
    *was_cut = false;
    struct phema_strbuf text = {0}, written = {0};
    struct phema_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return phema_fail_memory(err);
    journal->file = -1;
    journal->is_line = header->is_line;
    journal->path = strdup(path);
    write_header(&written, header);
    enum phema_status status = journal->path
                                   ? load(journal, was_cut, &text, &written, begins_anew, err)
                                   : phema_fail_memory(err);
    phema_strbuf_clear(&text);
    phema_strbuf_clear(&written);
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

bool phema_journal_has_score(const struct phema_journal *journal, struct phema_search_point at)
{
    return journal_find_score(journal, at) < journal->n;
}

size_t phema_journal_count(const struct phema_journal *journal, const struct phema_search *search)
{
    size_t count = 0;
    for (size_t i = 0; i < journal->n; i++)
        count += phema_search_includes(search, journal->scores[i].at);
    return count;
}

bool phema_journal_find_best(struct phema_search_best *out, const struct phema_journal *journal,
                             const struct phema_search *search)
{
    return phema_search_find_best(out, search, journal->scores, journal->n);
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
