/* directory.h - inside the writer room: a directory while it is written. */
#ifndef WRITER_DIRECTORY_H
#define WRITER_DIRECTORY_H

#include "partial.h"

/* Removed by its name: for a listing there may be no memory, nor a descriptor. */
struct directory_file {
    char *name;
    struct phema_cleanup_entry *entry;
};

struct phema_writer_directory {
    char *path, *partial_path;
    int descriptor; /* of PATH.partial, which it locks */
    bool is_ours;   /* PATH.partial is: it may be removed */
    bool took_over;
    bool is_kept;       /* stays when it is abandoned */
    mode_t usual_write; /* as of a writer */
    mode_t old_mode;    /* of the directory that it was exchanged with */
    struct phema_writer_options options;
    struct phema_cleanup_entry *entry;
    struct directory_file *files;
    size_t n_files, files_capacity;
    int parent; /* opened before anything is published; or -1 */
    DIR *old;   /* what is replaced: opened before, so that it can be emptied afterwards */
};

/* Nothing of it is on the list of what goes any more. */
void writer_directory_forget(struct phema_writer_directory *directory);

#endif
