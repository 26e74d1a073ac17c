/* writer.h - one new file that appears under its name whole or not at all.
 * Bytes go into PATH.partial, preallocated and locked against a second run; commit syncs it,
 * renames it and syncs the directory; abandon, a failure or a signal removes it. Until then nobody
 * but its user may write it, and of what stands there already only what is so is used. put may be
 * called from several threads for bytes that do not overlap. Each byte of a fresh file is put once
 * at most, unless neither is part of a long run of zeros: those become holes, in runs of at least
 * 32 KiB of whole blocks, and are not written. */
#ifndef PHEMA_WRITER_H
#define PHEMA_WRITER_H

#include "phema/checksum.h"
#include "phema/error.h"
#include "phema/span.h"

struct phema_writer;

struct phema_writer_options {
    bool replaces;    /* an existing PATH is replaced (--force) */
    bool syncs;       /* fsync file and directory before and after the rename */
    bool drops_cache; /* what is written, and the source of a copy, leaves the page cache */
    /* A copy shares no blocks with its source and has all of its own before the first is changed:
     * for files that are written through a mapping, where a full disk cannot be reported. */
    bool owns_blocks;
    bool *is_published; /* NULL, or set when PATH is the new file, whatever fails afterwards */
    /* A PATH.partial of the right size that an ended run has left stays as it is, to be gone on
     * with (phema_writer_is_resumed), and whatever fails then: as if phema_writer_keep was said. */
    bool resumes;
};

/* size_bytes: of the whole file. Messages name the path.
 * PHEMA_ERR_OUTPUT    PATH exists; PATH.partial is being written by a live run, is another user's,
 *                     or others may write it; no space; no permission */
PHEMA_FALLIBLE phema_writer_open(struct phema_writer **out, const char *path, uint64_t size_bytes,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err);

/* The same for a file that begins as a copy of the first size_bytes of another: by reflink or
 * inside the kernel where the filesystem can, with a mode from the umask as a fresh one.
 * PHEMA_ERR_FILE  the source is missing, not a regular file, shorter, unreadable; names it */
PHEMA_FALLIBLE phema_writer_open_copy(struct phema_writer **out, const char *path,
                                      const char *source, uint64_t size_bytes,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err);

/* The whole file, shared, for reading and writing; it is unmapped by commit and abandon. A file of
 * no bytes cannot be mapped. Where its disk turns out to be full or fails, the program ends with a
 * sentence that names the path. Later calls return the same; not safe from several threads. */
PHEMA_FALLIBLE phema_writer_map(uint8_t **out, struct phema_writer *writer,
                                struct phema_error *err);

/* Reads back what was put or copied. */
PHEMA_FALLIBLE phema_writer_read(struct phema_writer *writer, uint64_t offset, void *data,
                                 size_t size, struct phema_error *err);

/* Write at an absolute offset; may be called with any order of offsets. */
PHEMA_FALLIBLE phema_writer_put(struct phema_writer *writer, uint64_t offset, const void *data,
                                size_t size, struct phema_error *err);

/* What was put into another writer, its first content_size bytes, as a seekable zstd file, from the
 * file's beginning: independent frames with their size and a checksum, then the seek table. Frames
 * end where a tensor ends; small tensors share frames of up to 4 MiB, larger ones are cut every
 * 4 MiB. The bytes depend on content, ends, level and the version of libzstd, not on the threads.
 * The file must be open with a size of 0.
 *   size_bytes  out: of the file
 *   ends        [n_ends] sorted offsets in the content
 *   level       as zstd has them: 1 to 22, negative ones are faster; what is beyond is brought in
 *   n_threads   at least 1
 * PHEMA_ERR_OUTPUT    cannot be written, or too large
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_writer_put_zstd(uint64_t *size_bytes, struct phema_writer *writer,
                                     struct phema_writer *plain, uint64_t content_size,
                                     const uint64_t *ends, size_t n_ends, int level,
                                     unsigned n_threads, struct phema_error *err);

/* What each thread of that holds, at most. n_frames: out, about as many there will be. */
uint64_t phema_writer_zstd_bytes(uint64_t *n_frames, int level, uint64_t content_size);

/* Compresses size bytes at this level, to see how long that takes. */
PHEMA_FALLIBLE phema_writer_try_zstd(int level, const void *data, size_t size,
                                     struct phema_error *err);

/* What of publishing takes long or can fail for want of space: on disk and closed, not under its
 * name. On failure it is to be abandoned. */
PHEMA_FALLIBLE phema_writer_finish(struct phema_writer *writer, struct phema_error *err);

/* Under its name, and commit makes it stay so, while abandon brings back what was there before,
 * where the filesystem can exchange files, and else leaves it. In between ending signals have to be
 * held (phema/cleanup.h). For two files that belong together. */
PHEMA_FALLIBLE phema_writer_publish(struct phema_writer *writer, struct phema_error *err);

/* Publish and close. On failure the partial file is removed as well. */
PHEMA_FALLIBLE phema_writer_commit(struct phema_writer *writer, struct phema_error *err);
void phema_writer_abandon(struct phema_writer *writer); /* takes NULL */

/* PATH.partial was there: the leftover of a run that was killed, and is taken over. */
bool phema_writer_took_over(const struct phema_writer *writer);

/* It holds what it held; of a copy the source was not copied again. */
bool phema_writer_is_resumed(const struct phema_writer *writer);

/* From here on PATH.partial stays whatever ends the run, for another one that resumes; or, keeps
 * false, goes after all when it is abandoned. */
void phema_writer_keep(struct phema_writer *writer, bool keeps);

const char *phema_writer_path(const struct phema_writer *writer);

/* Makes the entry of path in its directory durable: after a directory was made. */
PHEMA_FALLIBLE phema_writer_sync_entry(const char *path, struct phema_error *err);

/* Before many files are opened at once: raises the soft limit on descriptors where it would not do.
 * PHEMA_ERR_RESOURCE when the hard limit is below what n_files need. */
PHEMA_FALLIBLE phema_writer_reserve_descriptors(size_t n_files, struct phema_error *err);

/* 6 when path exists and may not be replaced: for refusing before any work is done. */
PHEMA_FALLIBLE phema_writer_check_absent(const char *path, struct phema_error *err);

/* A directory of new files that appears under its name whole or not at all: PATH.partial/ until
 * then. A directory at PATH is replaced when it is empty, or when asked to and it holds regular
 * files and nothing else; in one step where the filesystem can exchange directories. Its functions
 * are for one thread at a time; the writers they give are as any. */
struct phema_writer_directory;

/* PHEMA_ERR_OUTPUT  PATH exists and is not to be, or cannot be, replaced; PATH.partial is being
 *                   written by a live run, or holds what no run of this program has left */
PHEMA_FALLIBLE phema_writer_directory_open(struct phema_writer_directory **out, const char *path,
                                           const struct phema_writer_options *options,
                                           struct phema_error *err);

/* Only whether PATH is free or may be replaced: for refusing before any work is done. */
PHEMA_FALLIBLE phema_writer_directory_check(const char *path, bool replaces,
                                            struct phema_error *err);

/* As phema_writer_took_over and phema_writer_keep; the latter also of each of its files. */
bool phema_writer_directory_took_over(const struct phema_writer_directory *directory);
void phema_writer_directory_keep(struct phema_writer_directory *directory, bool keeps);

/* A new file of the directory; name has no slash and was not added before. phema_writer_commit
 * finishes it, and must have done so before the directory is published. Messages name PATH/name. */
PHEMA_FALLIBLE phema_writer_directory_add(struct phema_writer **out,
                                          struct phema_writer_directory *directory,
                                          const char *name, uint64_t size_bytes,
                                          struct phema_error *err);
/* The same for a file that begins as a copy of all of a source. */
PHEMA_FALLIBLE phema_writer_directory_add_copy(struct phema_writer **out,
                                               struct phema_writer_directory *directory,
                                               const char *name, const char *source,
                                               struct phema_error *err);
/* A finished copy of a regular file (symbolic links are followed). */
PHEMA_FALLIBLE phema_writer_directory_copy_file(struct phema_writer_directory *directory,
                                                const char *name, const char *source,
                                                struct phema_error *err);

/* Files of a directory that is gone on with that were not added again: of another plan, they go. */
void phema_writer_directory_remove_others(struct phema_writer_directory *directory);

/* Publish and close. On failure everything is removed, but where only the old directory could not
 * be: the new one is in place then, and the message says so. */
PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err);
/* Takes NULL. Writers of its files are abandoned before. */
void phema_writer_directory_abandon(struct phema_writer_directory *directory);

/* ---- One output that several processes write ---- */

/* There is a file for each: more on one output are a mistake. */
#define PHEMA_MAX_PARTS   10000
#define PHEMA_PART_DIGEST 17 /* sixteen hexadecimal digits and a NUL */

/* One process' part of PATH: PATH.partial is shared by all of them, made by whoever comes first and
 * emptied by nobody, and each writes bytes that no other writes. PATH.part-I-of-N says how far a
 * part is: it is locked while the part is being written, says so when it is done, and is removed
 * when the part fails. An ordinary run does not take PATH over while there are such files. */
struct phema_writer_part;

struct phema_writer_part_file {
    const char *name; /* in the directory; NULL: the output itself */
    uint64_t size_bytes;
};

/* What the parts of an output have read (phema/checksum.h): join adds up what they say of each
 * place, and puts the digits there. */
struct phema_writer_part_sum {
    uint64_t offset; /* in the first file */
    struct phema_hash_sum sum;
};

struct phema_writer_part_options {
    uint64_t part, n_parts; /* 1 <= part <= n_parts <= PHEMA_MAX_PARTS */
    const char *digest;     /* of all that shapes the bytes: what differs does not go together */
    bool is_directory;
    const struct phema_writer_part_file *files; /* [n_files] all that the output will hold */
    size_t n_files;
    const struct phema_writer_part_sum *sums; /* [n_sums] known when the part is finished */
    size_t n_sums;
    bool syncs;
};

/* path may end in slashes; options are borrowed until the part is finished or abandoned.
 * PHEMA_ERR_OUTPUT  the same part, or an ordinary run, is being written now; other parts are here
 *                   that do not go with it: says what to remove; what the others open fail with */
PHEMA_FALLIBLE phema_writer_part_open(struct phema_writer_part **out, const char *path,
                                      const struct phema_writer_part_options *options,
                                      struct phema_error *err);

/* File f of the options at its full size, shared with the other parts: phema_writer_commit syncs
 * and closes it, abandon leaves it where it is. */
PHEMA_FALLIBLE phema_writer_part_file(struct phema_writer **out, struct phema_writer_part *part,
                                      size_t f, struct phema_error *err);
/* The same, as a finished copy of a regular file: for one part alone. */
PHEMA_FALLIBLE phema_writer_part_copy_file(struct phema_writer_part *part, size_t f,
                                           const char *source, struct phema_error *err);

/* The part is written: its files are committed. Freed in any case; on failure it is not done. */
PHEMA_FALLIBLE phema_writer_part_finish(struct phema_writer_part *part, struct phema_error *err);
/* Takes NULL. PATH.partial stays, for the others. */
void phema_writer_part_abandon(struct phema_writer_part *part);

/* All parts of PATH, found, done and alike. Nothing is changed until the commit, which publishes
 * them under PATH and removes their files.
 * PHEMA_NO          some parts are not done: says which
 * PHEMA_ERR_OUTPUT  there are none; PATH exists and is not to be replaced; they do not go together,
 *                   or not with PATH.partial */
struct phema_writer_join;
PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err);
const char *phema_writer_join_path(const struct phema_writer_join *join);
uint64_t phema_writer_join_bytes(const struct phema_writer_join *join);
uint64_t phema_writer_join_n_parts(const struct phema_writer_join *join);
/* Freed in any case; where it fails before anything was published, all is as it was. */
PHEMA_FALLIBLE phema_writer_join_commit(struct phema_writer_join *join, struct phema_error *err);
void phema_writer_join_abandon(struct phema_writer_join *join); /* takes NULL */

/* ---- How far an output is ---- */

/* PATH.journal, beside what it is about: a line that says of what output it is, then records, each
 * with a checksum. What is behind the last whole record was torn by a kill and is not there. It is
 * no lock: who writes it has one on the output. */
struct phema_writer_journal;

/* What there is of a journal, before the output is opened. */
enum phema_writer_journal_state {
    PHEMA_WRITER_JOURNAL_ABSENT, /* or not begun, or none of ours */
    PHEMA_WRITER_JOURNAL_OTHER,  /* of something else than this digest */
    PHEMA_WRITER_JOURNAL_OURS
};
/* PHEMA_ERR_OUTPUT: it is another user's, or others may write it */
PHEMA_FALLIBLE phema_writer_journal_look(enum phema_writer_journal_state *out, const char *path,
                                         const char *digest, struct phema_error *err);

/* The digest is of all that shapes the bytes (PHEMA_PART_DIGEST). With resumes a journal of this
 * digest is kept, any other is begun anew; a new one goes with a failure or a signal, until it is
 * to be kept.
 * PHEMA_ERR_OUTPUT  there is a file of this name that is no journal, or not this user's alone; it
 *                   cannot be made */
PHEMA_FALLIBLE phema_writer_journal_open(struct phema_writer_journal **out, const char *path,
                                         const char *digest, bool resumes, struct phema_error *err);

/* The next record; data NULL behind the last whole one, and from then on. Borrowed until the next
 * call. */
PHEMA_FALLIBLE phema_writer_journal_next(struct phema_span *out,
                                         struct phema_writer_journal *journal,
                                         struct phema_error *err);

/* From the first record on again; all are to be read once more. */
void phema_writer_journal_again(struct phema_writer_journal *journal);

/* When all records were read: behind them. At most PHEMA_MAX_JOURNAL_RECORD bytes. Nothing is
 * synced: what a record says of an output must be seen to be so. */
#define PHEMA_MAX_JOURNAL_RECORD ((size_t)16 << 20)
PHEMA_FALLIBLE phema_writer_journal_append(struct phema_writer_journal *journal,
                                           struct phema_span record, struct phema_error *err);

void phema_writer_journal_keep(struct phema_writer_journal *journal,
                               bool keeps); /* as phema_writer_keep */
/* The file goes, unless it is to be kept. Takes NULL. */
void phema_writer_journal_close(struct phema_writer_journal *journal);
/* Of an output that is not gone on with; what is no journal stays. */
void phema_writer_journal_remove(const char *path);
/* OUT.journal of an output that is whole: of a run that was killed when it had published it. Not
 * while there is a partial output, of another run. */
void phema_writer_journal_remove_of(const char *output);

/* The outputs of which there are parts: path itself, or else those in the directory path, sorted.
 *   out  [n] paths, the caller's, each of them as well; none is no failure */
PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err);

#endif
