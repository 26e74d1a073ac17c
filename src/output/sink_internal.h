/* sink_internal.h - what sink.c, sink_open.c, sink_resume.c and sink_read_back.c share. */
#ifndef OUTPUT_SINK_INTERNAL_H
#define OUTPUT_SINK_INTERNAL_H

#include <stdatomic.h>

#include "phema/checksum.h"
#include "phema/sink.h"
#include "phema/writer.h"

struct sink {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_output *output;
    struct sink_options options;
    struct phema_writer **writers;             /* [output->n_files] that tensors go to */
    struct phema_writer *compressed, *sidecar; /* where there is one */
    struct phema_writer_directory *directory;
    struct phema_writer_part *part;        /* NULL: the output is written whole */
    struct phema_writer_journal *journal;  /* of what is resumed, or may be */
    char *journal_path;                    /* that there may be, or may have been */
    enum phema_writer_journal_state found; /* of it, before the output was opened */
    enum sink_start_state begun;
    bool is_kept;
    struct phema_writer_part_options part_options;
    struct phema_writer_part_file *part_files;
    struct phema_writer_part_sum *part_sums; /* of what was read for the part */
    char digest[PHEMA_PART_DIGEST];
    uint8_t *map;      /* of a copy with strided tensors */
    bool is_published; /* a copy is under its name */
    uint64_t size_bytes;
    /* [n_tensors] of what was put to each, less what was read back of it: in any order. NULL:
     * nothing will be read back */
    _Atomic uint64_t *sums;
    bool is_read_back;
    uint8_t *scratch; /* [scratch_size] for what is read back */
    size_t scratch_size;
};

/* What sink_put does instead without data.
 *   offset  in the file, of element first, or of the tensor where it is strided */
PHEMA_FALLIBLE sink_read_back(struct sink *sink, size_t i, uint64_t offset, uint64_t first,
                              uint64_t n, uint64_t *sum, struct phema_error *err);

/* By what bytes and their place are known again. */
static inline uint64_t sink_sum(const struct sink *sink, size_t i, uint64_t offset, uint64_t first,
                                const void *data, size_t size)
{
    uint64_t file = sink->output->places[i].file; /* places of a few files are told apart enough */
    return phema_hash_at(data, size, (offset + first) ^ file << 48);
}

/* Whether one of the tensors that are replaced in a copy is scattered over the file. */
bool sink_is_any_strided(const struct phema_plan *plan, const struct phema_outputs *outputs,
                         const struct phema_output *output);

/* Before the output is opened, then when it is. */
PHEMA_FALLIBLE sink_look_for_journal(struct sink *sink, struct phema_error *err);
PHEMA_FALLIBLE sink_begin_journal(struct sink *sink, struct phema_error *err);

#endif
