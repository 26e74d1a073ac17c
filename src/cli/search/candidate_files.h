/* candidate_files.h - the averages that a search makes, and their removal. A file is removed only
 * if the journal records it as made by the search and its metadata say that it was synthesised. */
#ifndef CLI_SEARCH_CANDIDATE_FILES_H
#define CLI_SEARCH_CANDIDATE_FILES_H

#include "phema/cleanup.h"
#include "phema/output.h"
#include "phema/search.h"

/* A candidate without a score yet. */
struct candidate {
    struct phema_search_point at;
    char *path;
    double predicted_error;
    bool is_own; /* made by this search, now or before it was killed */
    /* files that are removed when a signal ends the program: the checkpoint, or its files and then
     * their directory; and its provenance file */
    struct phema_cleanup_entry **entries;
    size_t n_entries;
};

/* Describes output j. Its files are on the list of cleanup.h from now on if the search owns
 * them. */
PHEMA_FALLIBLE candidate_set(struct candidate *out, const struct phema_outputs *outputs, size_t j,
                             bool is_own, struct phema_error *err);
/* Call it when the candidate has its score: signals no longer remove it. */
void candidate_keep(struct candidate *candidate);
void candidate_clear(struct candidate *candidate);

/* Removes directory/name where it is a synthesised checkpoint, with its provenance. */
void candidate_remove(const char *directory, const char *name,
                      const struct phema_checkpoint_options *options);

/* "a/b" -> "b" */
const char *candidate_name(const char *path);

#endif
