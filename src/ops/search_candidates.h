/* search_candidates.h - the averages that a search makes. One is removed only if the journal records
 * it as made by the search and its metadata say that it was synthesised. */
#ifndef OPS_SEARCH_CANDIDATES_H
#define OPS_SEARCH_CANDIDATES_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "phema/searching.h"

struct candidate_file {
    char *path;
    struct stat made;                  /* as it was when the candidate was made */
    struct phema_cleanup_entry *entry; /* until a signal must no longer remove it; or NULL */
};

struct candidate {
    struct phema_search_point at;
    char *path;
    double predicted_error;
    bool was_there;               /* when its pass began */
    bool is_own;                  /* made by this search, now or before it was killed */
    struct candidate_file *files; /* [n_files] the checkpoint and its provenance file, or the files
                                   * of a directory and then the directory */
    size_t n_files;
};

struct search_pass {
    struct candidate *candidates; /* [n] */
    size_t n, n_scored;
    /* Of a pass that is made while a command runs, of which nobody hears before search_pass_tell:
     * true ends it. NULL: of others. */
    const _Atomic bool *is_unwanted;
    bool has_run; /* some candidates did not exist, and were made */
    struct phema_synth_result result;
    struct phema_prepared prepared; /* until search_pass_tell */
    struct phema_request request;
    double widths[PHEMA_SEARCH_MOST_BATCH], time; /* what the request points to */
    const char *profiles[PHEMA_SEARCH_MOST_BATCH];
};

/* The point of a target of a pass. */
struct phema_search_point search_point_of(const struct phema_target *target);

/* Plans n points of one time without making them; where the time is NaN, it is that of the newest
 * snapshot. The first plan notes which snapshots there are; later ones must have the same. The caller
 * clears pass->prepared. */
PHEMA_FALLIBLE search_pass_plan(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                struct phema_error *err);

/* Makes the candidates of n points of one time. Call search_pass_end also after a failure.
 *   is_unwanted  of a pass that is made ahead, or NULL; search_pass_tell follows where it is wanted */
PHEMA_FALLIBLE search_pass_make(struct searching *searching, struct search_pass *pass,
                                const struct phema_search_point *points, size_t n,
                                const _Atomic bool *is_unwanted, struct phema_error *err);
/* Counts the pass, and tells what was found in it. */
void search_pass_tell(struct searching *searching, struct search_pass *pass);
/* Removes candidates without a score that this search has made. */
void search_pass_end(const struct searching *searching, struct search_pass *pass);

/* Makes a candidate anew that is no longer there. */
PHEMA_FALLIBLE search_make_again(struct searching *searching, struct candidate *candidate,
                                 struct phema_error *err);

/* Removes scored candidates that --keep does not keep. At the end also those without a score: a
 * killed run may have made candidates that are not wanted any more. */
void search_tidy(const struct searching *searching, bool is_end);

/* Call it when the candidate has its score: signals no longer remove it. */
void candidate_keep(struct candidate *candidate);
void candidate_clear(struct candidate *candidate);
/* Whether others have changed its files since the program made them: their contents, attributes, or
 * what has the name. */
bool candidate_is_changed(const struct candidate *candidate);
/* Removes whatever has the names of its files. */
void candidate_remove(const struct candidate *candidate);

#endif
