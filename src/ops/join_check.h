/* join_check.h - compares outputs with the checksums of their parts before they are published: by one
 * process, or by all of a team. Rank 0 has read the markers and holds the locks. The others receive
 * the blocks that they compare, and open the files with these bytes alone. */
#ifndef OPS_JOIN_CHECK_H
#define OPS_JOIN_CHECK_H

#include "phema/ops.h"

struct join_check {
    const struct phema_team *team; /* NULL: this process alone */
    /* The rank that has written run i in this command, plus one; or 0. The same in all processes. */
    uint64_t *makers; /* [n_makers] */
    size_t n_makers;  /* 0: unknown */
    bool is_shared;   /* the other processes know what is to be compared */
};

/* Which process compares a block, the number-th of all; or PHEMA_CHECK_NOT. One that has not written
 * it, where that is known, so that another machine's view of the file is compared. On one machine all
 * processes see the same pages, so that blocks of this command are not reread, as by one process. */
uint32_t join_check_reader(const struct join_check *check,
                           const struct phema_writer_check_block *block, size_t number);

/* Called by the process that joins: returns when all have compared, and no block differs.
 * PHEMA_ERR_OUTPUT  failures of phema_writer_join_check */
PHEMA_FALLIBLE join_check_list(struct join_check *check, const struct phema_join_list *list,
                               struct phema_error *err);
/* Called by rank 0 after that, or where it was never called: tells the others that nothing is to be
 * compared, unless they know. */
void join_check_end(struct join_check *check);
/* Called by the others at that time. A failure to compare is that of all. */
PHEMA_FALLIBLE join_check_follow(struct join_check *check, struct phema_error *err);

#endif
