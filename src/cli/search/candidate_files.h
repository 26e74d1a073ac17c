/* candidate_files.h - the averages that a search makes: which files they are, and their removal. A
 * file is removed only where the journal has it as made by the search and it says of itself that it
 * was synthesised. */
#ifndef CLI_SEARCH_CANDIDATE_FILES_H
#define CLI_SEARCH_CANDIDATE_FILES_H

#include "phema/cleanup.h"
#include "phema/output.h"
#include "phema/search.h"

/* One that waits for its score. */
struct candidate {
    struct phema_search_point at;
    char *path;
    double predicted_error;
    bool is_own; /* made by this search, now or before it was killed */
    /* files that go when a signal ends the program: the checkpoint, or its files and then their
     * directory; and the provenance beside it */
    struct phema_cleanup_entry **entries;
    size_t n_entries;
};

/* Of output j; entries are on the list of cleanup.h from now on where it is the search's own. */
PHEMA_FALLIBLE candidate_set(struct candidate *out, const struct phema_outputs *outputs, size_t j,
                             bool is_own, struct phema_error *err);
/* It has its score: signals leave it alone. */
void candidate_keep(struct candidate *candidate);
void candidate_clear(struct candidate *candidate);

/* Removes directory/name where it is a synthesised checkpoint, with its provenance. */
void candidate_remove(const char *directory, const char *name,
                      const struct phema_checkpoint_options *options);

/* "a/b" -> "b" */
const char *candidate_name(const char *path);

#endif
