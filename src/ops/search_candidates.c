// SPDX-License-Identifier: Apache-2.0
/* search_candidates.c - candidates are synthesised, and removed when their scores are known. The journal
 * knows the files of a killed run; the next run uses or removes them. A signal removes the files of a
 * candidate until it has its score. A command that scores it may change its files or those of
 * others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"
#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/parallel.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "search_candidates.h"

/* ---- The files of a candidate ---- */

/* Adds path, or path/name, with the end appended. */
static enum phema_status add_file(struct candidate *candidate, const char *name, const char *end,
                                  bool is_directory, struct phema_error *err)
{
    struct candidate_file *file = &candidate->files[candidate->n_files];
    struct phema_strbuf path = {0};
    phema_strbuf_puts(&path, candidate->path);
    if (name)
        phema_strbuf_printf(&path, "/%s", name);
    phema_strbuf_puts(&path, end);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status && candidate->is_own)
        status = phema_cleanup_add_partial(&file->entry, path.data, is_directory, err);
    if (status) {
        phema_strbuf_clear(&path);
        return status;
    }
    file->path = path.data;
    candidate->n_files++;
    return PHEMA_OK;
}

/* Sets the files of output j; a signal removes those of a candidate that is_own. */
static enum phema_status list_files(struct candidate *candidate,
                                    const struct phema_outputs *outputs, size_t j,
                                    struct phema_error *err)
{
    const struct phema_output *output = &outputs->items[j];
    enum phema_status status = PHEMA_OK;
    candidate->files =
        calloc(output->n_files + outputs->n_side_files + 2, sizeof(*candidate->files));
    if (!candidate->files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < output->n_files && !status; f++)
        status = add_file(candidate, output->files[f].name, "", false, err);
    bool is_directory = phema_output_traits(outputs)->is_directory;
    for (size_t f = 0; is_directory && f < outputs->n_side_files && !status; f++)
        status = add_file(candidate, outputs->side_files[f].name, "", false, err);
    if (!status && output->sidecar)
        status = add_file(candidate, NULL, ".json", false, err);
    if (status || !is_directory)
        return status;
    return add_file(candidate, NULL, "", true, err);
}

void candidate_keep(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) {
        phema_cleanup_remove(candidate->files[i].entry);
        candidate->files[i].entry = NULL;
    }
}

void candidate_clear(struct candidate *candidate)
{
    candidate_keep(candidate);
    for (size_t i = 0; i < candidate->n_files; i++)
        free(candidate->files[i].path);
    free(candidate->files);
    free(candidate->path);
    *candidate = (struct candidate){.path = NULL};
}

/* ---- Changes ---- */

/* Waits until a change gets another time: those of most filesystems have the ticks of this clock,
 * of 10 ms at most. */
static void wait_for_tick(const struct timespec *time)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now;
    for (int i = 0; i < 20 && !clock_gettime(CLOCK_REALTIME_COARSE, &now) &&
                    now.tv_sec == time->tv_sec && now.tv_nsec <= time->tv_nsec;
         i++)
        (void)nanosleep(&pause, NULL);
}

static void note_files(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) {
        struct candidate_file *file = &candidate->files[i];
        file->made = (struct stat){0};
        if (lstat(file->path, &file->made) == 0)
            wait_for_tick(&file->made.st_ctim);
    }
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A directory may get more entries. */
static bool is_as_made(const struct candidate_file *file)
{
    struct stat now;
    const struct stat *made = &file->made;
    bool is_there = lstat(file->path, &now) == 0;
    if (!made->st_ino)
        return !is_there;
    if (!is_there || now.st_dev != made->st_dev || now.st_ino != made->st_ino ||
        (now.st_mode & S_IFMT) != (made->st_mode & S_IFMT))
        return false;
    return S_ISDIR(now.st_mode) ||
           (now.st_size == made->st_size && is_same_time(&now.st_mtim, &made->st_mtim) &&
            is_same_time(&now.st_ctim, &made->st_ctim));
}

bool candidate_is_changed(const struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++)
        if (!is_as_made(&candidate->files[i]))
            return true;
    return false;
}

/* descriptor: of malloc */
static void *close_descriptor(void *descriptor)
{
    (void)close(*(int *)descriptor);
    free(descriptor);
    return NULL;
}

/* The name is gone at once. The kernel frees the pages of a file with its last descriptor, which
 * takes 20 ms for 100 MB: a thread closes it, so that no command waits for that. */
static int remove_file(const char *path)
{
    pthread_t thread;
    int *kept = malloc(sizeof(*kept));
    if (kept)
        *kept = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    int failed = unlink(path);
    if (kept && *kept >= 0 && phema_thread_start(&thread, close_descriptor, kept) == 0) {
        (void)pthread_detach(thread);
        return failed;
    }
    if (kept && *kept >= 0)
        (void)close(*kept);
    free(kept);
    return failed;
}

/* Removes the regular files in it, and the directory if it is empty then. */
static void remove_directory(const char *path)
{
    DIR *stream = opendir(path);
    if (!stream)
        return;
    for (const struct dirent *entry = NULL; (entry = readdir(stream));) {
        struct stat st;
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    (void)closedir(stream);
    (void)rmdir(path);
}

void candidate_remove(const struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) /* a link, not the file that it names */
        if (remove_file(candidate->files[i].path) && S_ISDIR(candidate->files[i].made.st_mode))
            remove_directory(candidate->files[i].path);
}

/* ---- Removing ---- */

/* A name for a single average, which must match the names of the others. */
#define CANDIDATE_NAME "phema-{time}-{sigma}"

/* Removes a file of the journal where it is a synthesised checkpoint, with its provenance. A journal
 * may come from anywhere: each file that it names is checked before it is removed. */
static void remove_candidate(const struct searching *searching, const char *name)
{
    const struct phema_plan_options *options = &searching->options->request.plan;
    struct phema_strbuf path = {0};
    struct stat st;
    phema_strbuf_printf(&path, "%s/%s", searching->options->directory, name);
    if (!path.is_failed && lstat(path.data, &st) == 0 &&
        phema_provenance_exists(path.data, &options->series.checkpoint)) {
        if (S_ISDIR(st.st_mode))
            remove_directory(path.data);
        else if (S_ISREG(st.st_mode) && remove_file(path.data) == 0) {
            phema_strbuf_puts(&path, ".json");
            if (!path.is_failed)
                (void)unlink(path.data);
        }
    }
    phema_strbuf_clear(&path);
}

/* Another file may get the name of a candidate that is gone. */
static void forget_removed(const struct searching *searching, const char *name)
{
    struct phema_strbuf path = {0};
    struct phema_error unused;
    struct stat st;
    phema_strbuf_printf(&path, "%s/%s", searching->options->directory, name);
    bool is_gone = !path.is_failed && lstat(path.data, &st) && errno == ENOENT;
    if (is_gone) /* a journal that cannot be written says so with the next score */
        (void)!phema_journal_remove_made(searching->journal, name, &unused);
    phema_strbuf_clear(&path);
}

void search_tidy(const struct searching *searching, bool is_end)
{
    size_t n_made = 0;
    const struct phema_search_made *made = phema_journal_made(searching->journal, &n_made);
    struct phema_search_best best;
    bool has_best = phema_journal_find_best(&best, searching->journal, &searching->search);
    bool keeps_best = searching->options->keep == SEARCH_KEEPS_BEST;
    bool keeps_all = searching->options->keep == SEARCH_KEEPS_ALL;
    for (size_t i = n_made; i-- > 0;) { /* backwards: those that are gone leave the list */
        bool is_scored = phema_journal_has_score(searching->journal, made[i].at);
        bool is_best = has_best && phema_search_point_equals(best.score->at, made[i].at);
        bool is_kept = is_scored ? keeps_all || (keeps_best && is_best) : !is_end;
        if (!is_kept)
            remove_candidate(searching, made[i].name);
        forget_removed(searching, made[i].name);
    }
}

/* ---- Making ---- */

/* As it is now: its size and time, since it may be large. */
static void hash_state(struct phema_hash *hash, const char *path)
{
    struct stat st;
    if (!path || stat(path, &st))
        return;
    phema_hash_add_u64(hash, (uint64_t)st.st_size);
    phema_hash_add_u64(hash, (uint64_t)st.st_mtim.tv_sec);
    phema_hash_add_u64(hash, (uint64_t)st.st_mtim.tv_nsec);
}

/* What a file of learning rates says of the time before each snapshot. */
static void hash_schedule(struct phema_hash *hash, const struct phema_plan *plan, const char *path)
{
    double begin = 0;
    for (size_t k = 0; path && !phema_schedule_is_spec(path) && k < plan->series->n; k++) {
        double end = plan->series->snapshots[k].time;
        double mean = end > begin ? phema_schedule_mean_square(plan->schedule, begin, end) : 0;
        phema_hash_add(hash, &mean, sizeof(mean));
        begin = end;
    }
}

/* A digest of the snapshots, which are identified: names, contents, profiles, times; and of the
 * files that averages are made with. */
static enum phema_status digest_of(char digest[PHEMA_DIGEST], const struct phema_plan *plan,
                                   const struct phema_request *request, struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_hash *hash = NULL;
    enum phema_status status = phema_hash_new(&hash, err);
    if (status)
        return status;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer time;
        const char *texts[] = {snapshot->label, snapshot->digest,
                               snapshot->spec ? snapshot->spec : "",
                               phema_number_format(&time, snapshot->named_time)};
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            phema_hash_add(hash, texts[i], strlen(texts[i]) + 1);
        phema_hash_add_u64(hash, phema_snapshot_bytes(snapshot));
    }
    hash_state(hash, request->outputs.into);
    hash_schedule(hash, plan, request->plan.schedule);
    phema_hash_digest(digest, hash);
    phema_hash_free(hash);
    return PHEMA_OK;
}

/* Sets the targets as options would: widths or lines, then the newest snapshot, all at one time. */
static enum phema_status set_targets(struct search_pass *pass, struct searching *searching,
                                     const struct phema_search_point *points, size_t n,
                                     const _Atomic bool *is_unwanted, struct phema_error *err)
{
    const char *line = searching->options->line;
    struct phema_name_buffer lambda;
    bool has_newest = false;
    *pass =
        (struct search_pass){.request = searching->options->request, .is_unwanted = is_unwanted};
    pass->request.outputs.out = searching->options->out;
    pass->request.in_the_way = "move it away, or give another OUT"; /* --force discards scores */
    struct phema_plan_options *options = &pass->request.plan;
    options->identifies = true;
    for (size_t i = 0; i < n; i++) {
        if (phema_search_is_newest(points[i]))
            has_newest = true;
        else if (line)
            pass->profiles[options->n_profiles++] =
                phema_arena_printf(&searching->arena, "line:%s,%s", line,
                                   phema_number_format(&lambda, points[i].sigma_rel));
        else
            pass->widths[options->n_sigma_rels++] = points[i].sigma_rel;
    }
    if (has_newest)
        pass->profiles[options->n_profiles++] = PHEMA_TARGET_NEWEST;
    pass->time = points[0].time;
    options->sigma_rels = pass->widths;
    options->profiles = pass->profiles;
    options->ats = &pass->time;
    options->n_ats = isnan(pass->time) ? 0u : 1u; /* without one, that of the newest snapshot */
    pass->request.max_error = PHEMA_UNKNOWN;
    return searching->arena.is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

static const struct phema_listener *heard_by(const struct searching *searching,
                                             const struct search_pass *pass)
{
    return pass->is_unwanted ? &phema_nobody : searching->passes;
}

static enum phema_status plan(struct searching *searching, struct search_pass *pass,
                              struct phema_error *err)
{
    char digest[PHEMA_DIGEST];
    enum phema_status status =
        phema_prepare_plan(&pass->prepared, &pass->request, NULL, heard_by(searching, pass), err);
    if (status || !pass->prepared.plan) /* there is one, which clang's analyser cannot see */
        return status;
    const struct phema_plan *made = pass->prepared.plan;
    bool is_first = !*searching->snapshots;
    status = digest_of(is_first ? searching->snapshots : digest, made, &pass->request, err);
    if (!status && !is_first && strcmp(digest, searching->snapshots) != 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: the snapshots, or the file of %s or %s, are no longer those that "
                          "the search began with; %s keeps to earlier snapshots",
                          made->series->root, phema_setting_name(PHEMA_SET_INTO),
                          phema_setting_name(PHEMA_SET_SCHEDULE), phema_setting_name(PHEMA_SET_TO));
    return status;
}

PHEMA_FALLIBLE search_pass_plan(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err)
{
    enum phema_status status = set_targets(pass, searching, points, n, NULL, err);
    return status ? status : plan(searching, pass, err);
}

static enum phema_status name_outputs(const struct searching *searching, struct search_pass *pass,
                                      struct phema_error *err)
{
    struct phema_prepared *prepared = &pass->prepared;
    enum phema_status status = phema_prepare_outputs(
        prepared, &pass->request, searching->options->out, heard_by(searching, pass), err);
    bool is_alone = !status && phema_output_traits(&prepared->outputs)->is_directory &&
                    prepared->outputs.m == 1 && !strchr(searching->options->out, '{');
    if (!is_alone)
        return status;
    struct phema_strbuf out = {0};
    phema_strbuf_printf(&out, "%s" CANDIDATE_NAME, searching->options->out);
    phema_outputs_clear(&prepared->outputs);
    prepared->outputs = (struct phema_outputs){0};
    status = phema_strbuf_check(&out, err);
    if (!status)
        status = phema_prepare_outputs(prepared, &pass->request, out.data,
                                       heard_by(searching, pass), err);
    phema_strbuf_clear(&out);
    return status;
}

struct phema_search_point search_point_of(const struct phema_target *target)
{
    double at = target->is_stored ? PHEMA_SEARCH_NEWEST : target->sigma_rel;
    if (isnan(at)) /* the text of a line ends with its lambda */
        at = strtod(strrchr(target->spec, ',') + 1, NULL);
    return (struct phema_search_point){at, target->named_time};
}

static enum phema_status set_candidate(struct candidate *candidate, struct searching *searching,
                                       const struct phema_prepared *prepared, size_t j,
                                       struct phema_error *err)
{
    const struct phema_target *target = &prepared->plan->targets[j];
    const char *path = prepared->outputs.items[j].path, *name = phema_path_last_name(path);
    struct stat st;
    candidate->at = search_point_of(target);
    candidate->predicted_error = target->solution.predicted.total;
    enum phema_status status = PHEMA_OK;
    candidate->was_there = lstat(path, &st) == 0;
    if (!candidate->was_there)
        status = phema_journal_add_made(searching->journal, candidate->at, name, err);
    if (status)
        return status;
    candidate->is_own = phema_journal_has_made(searching->journal, name);
    candidate->path = strdup(path);
    if (!candidate->path)
        return phema_fail_memory(err);
    return list_files(candidate, &prepared->outputs, j, err);
}

/* One of the files that were there is not as the search would make it: they may be another's, whatever
 * the journal says of their names. */
static enum phema_status disown_existing(struct searching *searching, struct search_pass *pass,
                                         enum phema_status status)
{
    for (size_t j = 0; j < pass->n; j++) {
        struct candidate *candidate = &pass->candidates[j];
        const char *name = phema_path_last_name(candidate->path);
        struct phema_error unused;
        if (!candidate->was_there || !candidate->is_own)
            continue;
        candidate_keep(candidate);
        candidate->is_own = false;
        (void)!phema_journal_remove_made(searching->journal, name, &unused);
    }
    return status;
}

static void report_nothing(void *context, const struct phema_progress *progress)
{
    (void)context;
    (void)progress;
}

static bool is_unwanted(void *context)
{
    return atomic_load(((const struct search_pass *)context)->is_unwanted);
}

static enum phema_status synthesise(struct searching *searching, struct search_pass *pass,
                                    struct phema_error *err)
{
    const struct search_listener *listener = searching->listener;
    struct phema_prepared *prepared = &pass->prepared;
    enum phema_status status =
        phema_outputs_skip_existing(prepared, &pass->request, heard_by(searching, pass), err);
    if (status)
        return disown_existing(searching, pass, status);
    if (prepared->outputs.m == 0)
        return PHEMA_OK;
    if (pass->is_unwanted) {
        prepared->options.report = report_nothing; /* is_stopped is asked after a report */
        prepared->options.is_stopped = is_unwanted;
        prepared->options.context = pass;
    } else {
        listener->passing(listener->heard.context, searching, pass->n,
                          phema_journal_has_score(searching->journal, pass->candidates[0].at));
        listener_begin(&listener->heard, PHEMA_KEEPS_NOTHING, &prepared->options);
    }
    status =
        phema_synth_run(&pass->result, prepared->plan, &prepared->outputs, &prepared->options, err);
    if (!pass->is_unwanted)
        listener_end(&listener->heard, &prepared->options);
    pass->has_run = !status;
    return status;
}

void search_pass_tell(struct searching *searching, struct search_pass *pass)
{
    const struct search_listener *listener = searching->listener;
    if (pass->has_run)
        listener->synthesised(listener->heard.context, pass->prepared.plan->series, &pass->result);
    searching->n_passes += pass->has_run;
    phema_prepared_clear(&pass->prepared);
    pass->prepared = (struct phema_prepared){.plan = NULL};
}

static enum phema_status make(struct searching *searching, struct search_pass *pass,
                              struct phema_error *err)
{
    enum phema_status status = plan(searching, pass, err);
    if (status)
        return status;
    status = name_outputs(searching, pass, err);
    if (status)
        return status;
    for (size_t j = 0; j < pass->prepared.outputs.m; j++) {
        status = set_candidate(&pass->candidates[j], searching, &pass->prepared, j, err);
        if (status) {
            candidate_clear(&pass->candidates[j]);
            return status;
        }
        pass->n++;
    }
    status = synthesise(searching, pass, err);
    for (size_t j = 0; !status && j < pass->n; j++)
        note_files(&pass->candidates[j]);
    return status;
}

PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                const _Atomic bool *is_unwanted, struct phema_error *err)
{
    enum phema_status status = set_targets(pass, searching, points, n, is_unwanted, err);
    pass->candidates = calloc(n, sizeof(*pass->candidates));
    if (!status)
        status = pass->candidates ? make(searching, pass, err) : phema_fail_memory(err);
    if (!is_unwanted)
        search_pass_tell(searching, pass);
    return status;
}

PHEMA_FALLIBLE search_make_again(struct searching *searching, struct candidate *candidate,
                                 struct phema_error *err)
{
    struct search_pass pass;
    enum phema_status status = search_pass_make(searching, &pass, &candidate->at, 1, NULL, err);
    if (!status) {
        struct candidate made = pass.candidates[0];
        pass.candidates[0] = *candidate;
        *candidate = made;
        pass.n_scored = 1; /* the changed one is removed already */
    }
    search_pass_end(searching, &pass);
    return status;
}

void search_pass_end(const struct searching *searching, struct search_pass *pass)
{
    for (size_t j = 0; j < pass->n; j++) {
        struct candidate *candidate = &pass->candidates[j];
        if (j >= pass->n_scored && candidate->is_own && candidate_is_changed(candidate))
            candidate_remove(candidate);
        else if (j >= pass->n_scored && candidate->is_own)
            remove_candidate(searching, phema_path_last_name(candidate->path));
        candidate_clear(candidate);
    }
    free(pass->candidates);
    phema_prepared_clear(&pass->prepared);
}
