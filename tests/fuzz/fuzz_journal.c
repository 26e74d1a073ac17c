// SPDX-License-Identifier: Apache-2.0
/* fuzz_journal.c - The bytes as the scores.csv of a search, and as its lines after the header. A
 * search could resume from either. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phema/search.h"

enum { N_WIDTHS = 3, MOST_ASKED = 8 };

static const struct phema_journal_header header = {
    .command = "./evaluate.sh {}", .options = "run", .snapshots = "00ff"};

static struct phema_journal *open_journal(const char *path, bool begins_anew, bool *was_cut)
{
    struct phema_journal *journal = NULL;
    struct phema_error err = {0};
    enum phema_status status =
        phema_journal_open(&journal, was_cut, path, &header, begins_anew, &err);
    fuzz_require(!status == (journal != NULL), "outputs change only on success");
    if (status)
        fuzz_require_message(&err, path);
    return journal;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_scores(const struct phema_search_score *scores, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fuzz_require(isfinite(scores[i].at.sigma_rel) && isfinite(scores[i].at.time),
                     "points are finite");
        for (size_t j = 0; j < i; j++)
            fuzz_require(scores[i].at.sigma_rel != scores[j].at.sigma_rel ||
                             scores[i].at.time != scores[j].at.time,
                         "no two scores are of one point");
    }
}

/* A search removes files by these names. */
static void check_made(const struct phema_search_made *made, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = made[i].name;
        fuzz_require(*name && !strchr(name, '/') && strcmp(name, ".") != 0 &&
                         strcmp(name, "..") != 0,
                     "names are those of files beside the journal");
    }
}

/* Asks for the time of the first score, so that some scores count. */
static void check_next(const struct phema_search_score *scores, size_t n)
{
    static const double widths[N_WIDTHS] = {0.05, 0.1, 0.25};
    const double time = n ? scores[0].at.time : 1;
    const struct phema_search search = {.widths = widths,
                                        .n_widths = N_WIDTHS,
                                        .times = &time,
                                        .n_times = 1,
                                        .has_newest = n % 3,
                                        .newest_time = time,
                                        .tolerance = 0.005,
                                        .noise = n % 5 ? 0 : 0.25,
                                        .maximizes = n % 2};
    struct phema_search_point asked[MOST_ASKED];
    size_t n_asked = phema_search_next(asked, MOST_ASKED, &search, scores, n);
    fuzz_require(n_asked <= MOST_ASKED, "no more points than were asked for");
    for (size_t i = 0; i < n_asked; i++) {
        bool is_newest = search.has_newest && phema_search_is_newest(asked[i]);
        fuzz_require(asked[i].time == time &&
                         (is_newest || (asked[i].sigma_rel >= widths[0] &&
                                        asked[i].sigma_rel <= widths[N_WIDTHS - 1])),
                     "what is asked for lies in the range");
        for (size_t j = 0; j < n; j++)
            fuzz_require(asked[i].time != scores[j].at.time ||
                             asked[i].sigma_rel != scores[j].at.sigma_rel,
                         "what was scored is not asked for");
    }
    struct phema_search_best best;
    if (phema_search_find_best(&best, &search, scores, n))
        fuzz_require(best.score >= scores && best.score < scores + n && isfinite(best.score->score),
                     "the best is one of the scores");
}

/* Appends one more score and reads everything again. */
static void go_on(struct phema_journal *journal, const char *path)
{
    size_t n = 0, n_again = 0, n_made = 0, n_made_again = 0;
    const struct phema_search_score more = {
        .at = {0.0625, 77}, .score = -3, .predicted_error = 0.5};
    struct phema_error err = {0};
    fuzz_require(phema_journal_add(journal, &more, &err) == PHEMA_OK, "a score can be added");
    const struct phema_search_score *scores = phema_journal_scores(journal, &n);
    (void)phema_journal_made(journal, &n_made);
    struct phema_search_score *before = malloc(n * sizeof(*before));
    if (!before)
        abort();
    memcpy(before, scores, n * sizeof(*before));
    phema_journal_close(journal);
    bool was_cut = true;
    journal = open_journal(path, false, &was_cut);
    fuzz_require(journal && !was_cut, "what is gone on with can be read");
    scores = phema_journal_scores(journal, &n_again);
    (void)phema_journal_made(journal, &n_made_again);
    fuzz_require(n_again == n && n_made_again == n_made, "nothing comes or goes");
    for (size_t i = 0; i < n; i++)
        fuzz_require(before[i].at.sigma_rel == scores[i].at.sigma_rel &&
                         before[i].at.time == scores[i].at.time &&
                         is_same(before[i].score, scores[i].score),
                     "scores stay as they are");
    free(before);
    phema_journal_close(journal);
}

static void check_untouched(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "re");
    uint8_t *found = malloc(size + 1);
    fuzz_require(file && found && fread(found, 1, size + 1, file) == size &&
                     (!size || memcmp(found, data, size) == 0),
                 "what is refused stays as it is");
    (void)fclose(file);
    free(found);
}

/* A file that a search wrote, or began to write. */
static bool is_of_a_search(const uint8_t *data, size_t size)
{
    static const char first[] = "# posthoc-ema search 1\n";
    size_t n = size < sizeof(first) - 1 ? size : sizeof(first) - 1;
    return !n || memcmp(data, first, n) == 0;
}

static void check_file(const uint8_t *data, size_t size)
{
    const char *path = fuzz_store("scores.csv", data, size);
    bool was_cut = false;
    struct phema_journal *journal = open_journal(path, false, &was_cut);
    if (journal) {
        size_t n = 0, n_made = 0;
        const struct phema_search_score *scores = phema_journal_scores(journal, &n);
        check_scores(scores, n);
        check_made(phema_journal_made(journal, &n_made), n_made);
        check_next(scores, n);
        go_on(journal, path);
    } else {
        check_untouched(path, data, size);
    }
    bool is_found = journal != NULL, is_own = is_of_a_search(data, size);
    journal = open_journal(path, true, &was_cut);
    fuzz_require(is_own == (journal != NULL), "a file of a search can be begun anew, no other");
    if (!journal) {
        fuzz_require(!is_found, "a file that can be continued is of a search");
        check_untouched(path, data, size);
        return;
    }
    size_t n = 0, n_made = 0;
    (void)phema_journal_scores(journal, &n);
    fuzz_require(n == 0, "what begins anew has no scores");
    check_made(phema_journal_made(journal, &n_made), n_made);
    phema_journal_close(journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char head[] = "# posthoc-ema search 1\n# command \"./evaluate.sh {}\"\n"
                               "# options \"run\"\n# snapshots 00ff\n"
                               "sigma_rel,time,score,seconds,predicted_error\n";
    const size_t head_size = sizeof(head) - 1;
    check_file(data, size);
    uint8_t *whole = malloc(head_size + size);
    if (!whole)
        return 0;
    memcpy(whole, head, head_size);
    if (size)
        memcpy(whole + head_size, data, size);
    check_file(whole, head_size + size);
    free(whole);
    return 0;
}
