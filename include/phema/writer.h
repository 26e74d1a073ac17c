/* writer.h - new files and directories that appear under their names whole or not at all. Bytes go
 * into PATH.partial, which is preallocated and locked against a second run. commit syncs
 * PATH.partial, renames it and syncs the directory. abandon, a failure or a signal removes it.
 * Until then only its user may write it, and a leftover is used only where that holds for it too.
 * Several threads may write at once where their bytes do not overlap. Long runs of zeros, of at
 * least 32 KiB of whole blocks, become holes and are not written. In a fresh file, a byte that is
 * or was part of such a run must be written at most once. */
#ifndef PHEMA_WRITER_H
#define PHEMA_WRITER_H

#include "phema/checksum.h"
#include "phema/error.h"
#include "phema/span.h"
#include "phema/strbuf.h"

struct join_place;
struct phema_packer;
struct phema_writer;

struct phema_writer_options {
    bool replaces;    /* an existing PATH is replaced (--force) */
    bool syncs;       /* fsync file and directory before and after the rename */
    bool drops_cache; /* the file, and the source of a copy, leave the page cache */
    /* A copy shares no blocks with its source, and all its blocks are allocated before the first is
     * changed. For files written through a mapping, where a full disk cannot be reported. */
    bool owns_blocks;
    bool *is_published; /* NULL, or set once PATH is the new file, whatever fails afterwards */
    /* A PATH.partial of the right size that an ended run has left keeps its bytes
     * (phema_writer_is_resumed), and stays whatever fails: as after phema_writer_keep. */
    bool resumes;
    /* Of a directory: its files may lie in folders. An old directory, or a leftover, with folders is
     * then replaced where it holds PHEMA_PROVENANCE_FILE. */
    bool has_folders;
};

/* Opens a new file. size_bytes: of the whole file. Messages name the path.
 * PHEMA_ERR_OUTPUT    PATH exists; a live run is writing PATH.partial, or it belongs to another
 *                     user, or others may write it; no space; no permission */
PHEMA_FALLIBLE phema_writer_open(struct phema_writer **out, const char *path, uint64_t size_bytes,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err);

/* The same for a file that begins as a copy of the first size_bytes of another. Copies by reflink
 * or inside the kernel where the filesystem can. The mode comes from the umask, as of a fresh file.
 * PHEMA_ERR_FILE  the source is missing, not a regular file, shorter, unreadable; names it */
PHEMA_FALLIBLE phema_writer_open_copy(struct phema_writer **out, const char *path,
                                      const char *source, uint64_t size_bytes,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err);

/* Maps the whole file, shared, for reading and writing; commit and abandon unmap it. A file of no
 * bytes cannot be mapped. Where its disk is full or fails, the program ends with a message that
 * names the path. Later calls return the same mapping. Not safe from several threads. */
PHEMA_FALLIBLE phema_writer_map(uint8_t **out, struct phema_writer *writer,
                                struct phema_error *err);

/* Reads bytes that were written or copied. */
PHEMA_FALLIBLE phema_writer_read(struct phema_writer *writer, uint64_t offset, void *data,
                                 size_t size, struct phema_error *err);

/* Writes at an absolute offset; offsets may come in any order. */
PHEMA_FALLIBLE phema_writer_write(struct phema_writer *writer, uint64_t offset, const void *data,
                                  size_t size, struct phema_error *err);

/* Of a part: these bytes are in the file already, and count as written by the part. Each byte of a
 * part is written or counted once. Does nothing for other files. */
void phema_writer_count(struct phema_writer *writer, uint64_t offset, const void *data,
                        size_t size);

/* Of a part: writes bytes that another part writes as well, and that one counts. */
PHEMA_FALLIBLE phema_writer_write_uncounted(struct phema_writer *writer, uint64_t offset,
                                            const void *data, size_t size, struct phema_error *err);

/* The frames of a seekable zstd file. Frames end where a tensor ends; small tensors share frames of
 * up to 4 MiB, larger ones are cut every 4 MiB. */
struct phema_writer_frames {
    uint64_t *ends; /* [n] in the content, ascending; the caller's (free) */
    size_t n;
    int level;        /* of zstd: 1 to 22, negative levels are faster; levels beyond are clamped */
    unsigned library; /* version of libzstd, which the compressed bytes depend on */
};

/* tensor_ends: [n_tensor_ends] sorted offsets in the content
 * PHEMA_ERR_OUTPUT  too large */
PHEMA_FALLIBLE phema_writer_cut_frames(struct phema_writer_frames *out, uint64_t content_size,
                                       const uint64_t *tensor_ends, size_t n_tensor_ends, int level,
                                       struct phema_error *err);

/* Writes a seekable zstd file, from offset 0. Its content is that of another writer: independent
 * frames with their size and a checksum, then the seek table. The bytes depend on the content, the
 * frames and the version of libzstd, not on the threads. The file must be open with a size of 0.
 *   size_bytes  out: of the file
 *   n_threads   at least 1
 *   done_bytes  the content compressed so far is added; NULL: not counted
 * PHEMA_ERR_OUTPUT    cannot be written
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_writer_write_zstd(uint64_t *size_bytes, struct phema_writer *writer,
                                       struct phema_writer *plain,
                                       const struct phema_writer_frames *frames, unsigned n_threads,
                                       _Atomic uint64_t *done_bytes, struct phema_error *err);

/* Most bytes that each thread of phema_writer_write_zstd holds. n_frames: out, their approximate
 * number. */
uint64_t phema_writer_zstd_bytes(uint64_t *n_frames, int level, uint64_t content_size);

/* Compresses size bytes at this level, for the caller to measure. */
PHEMA_FALLIBLE phema_writer_try_zstd(int level, const void *data, size_t size,
                                     struct phema_error *err);

/* Syncs the file early where the options sync it, so that several files can be synced at once.
 * Nothing is written afterwards. The finish, or the commit, reports a failure. Safe for several
 * writers at once. */
void phema_writer_sync(struct phema_writer *writer);

/* The commit leaves the directory of PATH unsynced. The caller then commits another file of this
 * directory, or calls phema_writer_sync_entry, before PATH counts as durable. Comes before the
 * finish. */
void phema_writer_leave_entry(struct phema_writer *writer);

/* Syncs and closes the partial file without renaming it: the part of publishing that takes long or
 * can fail for lack of space. On failure the writer is to be abandoned. */
PHEMA_FALLIBLE phema_writer_finish(struct phema_writer *writer, struct phema_error *err);

/* Renames the file to PATH. commit then makes that final. abandon restores the old file where the
 * filesystem can exchange files, and else leaves the new one. The caller holds ending signals in
 * between (phema/cleanup.h). For two files that belong together. */
PHEMA_FALLIBLE phema_writer_publish(struct phema_writer *writer, struct phema_error *err);

/* Publishes and closes. A failure removes the partial file. */
PHEMA_FALLIBLE phema_writer_commit(struct phema_writer *writer, struct phema_error *err);
void phema_writer_abandon(struct phema_writer *writer); /* takes NULL */

/* A whole file at once. The text is cleared, also after a failure. */
PHEMA_FALLIBLE phema_writer_store(const char *path, struct phema_strbuf *text,
                                  const struct phema_writer_options *options,
                                  struct phema_error *err);

/* PATH.json, the sidecar of a file at PATH: its provenance, which is published with it.
 * PHEMA_ERR_OUTPUT when it exists, unless a killed run has published it before PATH. */
PHEMA_FALLIBLE phema_writer_check_sidecar_absent(const char *path, struct phema_error *err);
/* Opens it with this text, in place of the one that a killed run has left. */
PHEMA_FALLIBLE phema_writer_open_sidecar(struct phema_writer **out, const char *path,
                                         struct phema_span text,
                                         const struct phema_writer_options *options,
                                         struct phema_error *err);
/* Publishes both, the sidecar first, and frees both in any case. Where the file cannot be published,
 * the old sidecar comes back. */
PHEMA_FALLIBLE phema_writer_commit_both(struct phema_writer *sidecar, struct phema_writer *writer,
                                        struct phema_error *err);

/* true when PATH.partial existed: the leftover of a killed run was taken over. */
bool phema_writer_took_over(const struct phema_writer *writer);

/* true when the leftover keeps its bytes; the source of a copy was not copied again. */
bool phema_writer_is_resumed(const struct phema_writer *writer);

/* keeps true: PATH.partial stays from here on, whatever ends the run, for another run that resumes.
 * keeps false: abandon removes it after all. */
void phema_writer_keep(struct phema_writer *writer, bool keeps);

/* Syncs the directory that holds path: makes a new directory durable. */
PHEMA_FALLIBLE phema_writer_sync_entry(const char *path, struct phema_error *err);

/* Before n_files files are opened at once: raises the soft limit on descriptors where it is too
 * low. PHEMA_ERR_RESOURCE when the hard limit is too low as well. */
PHEMA_FALLIBLE phema_writer_reserve_descriptors(size_t n_files, struct phema_error *err);

/* For refusing before any work is done.
 * PHEMA_ERR_OUTPUT  path exists, and is not a file or a link to one that may be replaced */
PHEMA_FALLIBLE phema_writer_check_place(const char *path, bool replaces, struct phema_error *err);

/* PHEMA_ERR_OUTPUT when the directory that path would be in does not exist, or is a file. */
PHEMA_FALLIBLE phema_writer_check_parent(const char *path, struct phema_error *err);

/* The same for a directory that cannot be written; where it is missing, of the next one above. */
PHEMA_FALLIBLE phema_writer_check_writable(const char *path, struct phema_error *err);

/* ---- made_directories.c ---- */

#define PHEMA_MOST_MADE 8

/* Those that were missing. */
struct phema_made_directories {
    char *path; /* of the last one */
    struct phema_cleanup_entry *entries[PHEMA_MOST_MADE];
    size_t sizes[PHEMA_MOST_MADE]; /* [n] of their paths */
    size_t n;
};

/* Makes a directory, and those above it that are missing. They are removed when a signal ends the
 * program, and left with the next function, after a failure by this one itself.
 *   are_kept  other processes use them: a signal leaves them */
PHEMA_FALLIBLE phema_writer_make_directories(struct phema_made_directories *out, const char *path,
                                             bool are_kept, struct phema_error *err);
/* Clears it. are_kept: else those that are empty are removed */
void phema_writer_leave_directories(struct phema_made_directories *made, bool are_kept);
PHEMA_FALLIBLE phema_writer_sync_directories(const struct phema_made_directories *made,
                                             struct phema_error *err);

/* A directory of new files that appears as PATH whole or not at all, and is PATH.partial/ before. A
 * directory at PATH is replaced when it is empty, or when options say so and it holds regular files
 * only; see has_folders for others. That is one step where the filesystem can exchange directories.
 * Its functions are for one thread at a time; writers of its files are like others. */
struct phema_writer_directory;

/* PHEMA_ERR_OUTPUT  PATH exists and must not be, or cannot be, replaced; a live run is writing
 *                   PATH.partial, or it holds entries that no run of this program has left */
PHEMA_FALLIBLE phema_writer_directory_open(struct phema_writer_directory **out, const char *path,
                                           const struct phema_writer_options *options,
                                           struct phema_error *err);

/* Checks that PATH is absent or may be replaced. For refusing before any work is done. */
PHEMA_FALLIBLE phema_writer_directory_check(const char *path, bool replaces, bool has_folders,
                                            struct phema_error *err);

/* As phema_writer_took_over and phema_writer_keep; keep also applies to each of its files. */
bool phema_writer_directory_took_over(const struct phema_writer_directory *directory);
void phema_writer_directory_keep(struct phema_writer_directory *directory, bool keeps);

/* Opens a new file of the directory, and makes the folders of its name where it may have some. It
 * was not added before. phema_writer_commit finishes the file, before the directory is committed.
 * Messages name PATH/name.
 *   source  NULL, or the file that it begins as a copy of, as phema_writer_open_copy */
PHEMA_FALLIBLE phema_writer_directory_add(struct phema_writer **out,
                                          struct phema_writer_directory *directory,
                                          const char *name, const char *source, uint64_t size_bytes,
                                          struct phema_error *err);
/* Adds a finished copy of a regular file (symbolic links are followed). */
PHEMA_FALLIBLE phema_writer_directory_copy_file(struct phema_writer_directory *directory,
                                                const char *name, const char *source,
                                                struct phema_error *err);

/* Removes files of a resumed directory that were not added again: files of another plan. */
void phema_writer_directory_remove_others(struct phema_writer_directory *directory);

/* Publishes and closes. A failure removes everything, except where only the old directory could not
 * be removed. The new one is in place then, and the message says so. */
PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err);
/* Takes NULL. Abandon the writers of its files before. */
void phema_writer_directory_abandon(struct phema_writer_directory *directory);

/* ---- An output that several processes write ---- */

/* The first part / n_parts of so many bytes; no product is too large. */
static inline uint64_t phema_writer_part_end(uint64_t bytes, uint64_t part, uint64_t n_parts)
{
    return bytes / n_parts * part + bytes % n_parts * part / n_parts;
}

/* Each part has a marker file; more parts of one output are a mistake. */
#define PHEMA_MAX_PARTS   10000
#define PHEMA_PART_DIGEST 17 /* sixteen hexadecimal digits and a NUL */

/* One process' part of PATH. All parts share PATH.partial: the first one creates it, none empties
 * it, and each writes bytes that no other part writes. The marker PATH.part-I-of-N tells how far a
 * part is. It is locked while the part is being written, records that the part is done, and is
 * removed when the part fails. An ordinary run refuses to write PATH while markers exist.
 *
 * The parts of a compressed output share its content, PATH.plain.partial. Each compresses the frames
 * of which it has written all bytes into PATH.part-I-of-N.frames. join puts these into PATH.partial,
 * which is empty until then, and compresses the others. */
struct phema_writer_part;

#define PHEMA_PLAIN_SUFFIX ".plain"

struct phema_writer_part_file {
    const char *name; /* in the directory; NULL: the output itself */
    uint64_t size_bytes;
};

/* A sum over the data that a part has read (phema/checksum.h). join adds the sums of all parts and
 * writes the digits at offset. */
struct phema_writer_part_sum {
    uint64_t offset; /* in the sidecar, or else in file sums_file */
    struct phema_hash_sum sum;
};

/* A part's share of the CRC-32 of bytes that several parts write (phema_crc32_share). join writes
 * the exclusive or of all shares to each place, as four bytes little-endian. */
#define PHEMA_PART_CRC_PLACES 3 /* of one checksum, at most: two headers and a descriptor */
struct phema_writer_part_crc {
    size_t file;
    uint64_t at[PHEMA_PART_CRC_PLACES]; /* [n_places] in the file */
    unsigned n_places;                  /* at least 1 */
    uint32_t crc;
};

struct phema_writer_part_options {
    uint64_t part, n_parts; /* 1 <= part <= n_parts <= PHEMA_MAX_PARTS */
    const char *digest;     /* of all that determines the bytes: equal for parts of one output */
    bool is_directory;
    const struct phema_writer_part_file *files; /* [n_files] all files of the output */
    size_t n_files;
    const char *sidecar; /* text of PATH.json, which the first part keeps for join; NULL: none */
    size_t sums_file;    /* index of the file that holds the digits; 0 with a sidecar */
    const struct phema_writer_part_sum *sums; /* [n_sums] known when the part is finished */
    size_t n_sums;
    const struct phema_writer_part_crc *crcs; /* [n_crcs] known then, too */
    size_t n_crcs;
    const struct phema_writer_frames *frames; /* of a compressed output, whose only file is its
                                                 content; NULL: not compressed */
    bool verifies;                            /* join is to reread a compressed output */
    bool syncs;
    /* This process has finished another part of the output, whose marker is there. The other parts
     * were checked then, and later ones of another output find that marker. */
    bool has_made_part;
};

/* path may end in slashes; options are borrowed until the part is finished or abandoned.
 * PHEMA_ERR_OUTPUT  the same part, or an ordinary run, is being written now; there are parts of
 *                   another output, and the message tells which files to remove; failures of
 *                   phema_writer_open */
PHEMA_FALLIBLE phema_writer_part_open(struct phema_writer_part **out, const char *path,
                                      const struct phema_writer_part_options *options,
                                      struct phema_error *err);

/* Opens file f of the options at its full size, shared with the other parts. phema_writer_commit
 * syncs and closes it; abandon leaves it. */
PHEMA_FALLIBLE phema_writer_part_file(struct phema_writer **out, struct phema_writer_part *part,
                                      size_t f, struct phema_error *err);
/* Writes file f as a finished copy of a regular file: in one of the parts only. */
PHEMA_FALLIBLE phema_writer_part_copy_file(struct phema_writer_part *part, size_t f,
                                           const char *source, struct phema_error *err);

/* Compresses frames of a compressed output, when all bytes of this part are written.
 *   plain       the file of the part
 *   is_own      [frames->n] of the options: all bytes of the frame are this part's
 *   n_threads, done_bytes  as of phema_writer_write_zstd */
PHEMA_FALLIBLE phema_writer_part_compress(struct phema_writer_part *part,
                                          struct phema_writer *plain, const bool *is_own,
                                          unsigned n_threads, _Atomic uint64_t *done_bytes,
                                          struct phema_error *err);

/* *out: an earlier run has finished this part of PATH, with this digest, and what it has written is
 * still there, joined or not. */
PHEMA_FALLIBLE phema_writer_part_is_done(bool *out, const char *path, uint64_t part,
                                         uint64_t n_parts, const char *digest,
                                         struct phema_error *err);

/* Records that the part is done, after its files were committed. Frees the part in any case. */
PHEMA_FALLIBLE phema_writer_part_finish(struct phema_writer_part *part, struct phema_error *err);
/* Takes NULL. PATH.partial stays, for the other parts. */
void phema_writer_part_abandon(struct phema_writer_part *part);

/* What a process finds that has nothing more to write. */
enum phema_writer_parts_state {
    PHEMA_WRITER_PARTS_ABSENT,  /* none is there */
    PHEMA_WRITER_PARTS_MISSING, /* some are, and some are not done */
    PHEMA_WRITER_PARTS_DONE
};
PHEMA_FALLIBLE phema_writer_parts_look(enum phema_writer_parts_state *out, const char *path,
                                       struct phema_error *err);

/* PATH is there, and is what parts of this digest make: removes those of them that are done, and
 * when no marker is left, PATH.partial too, unless a run writes it or it has a journal. The caller
 * holds the lock of the join. */
PHEMA_FALLIBLE phema_writer_parts_drop(const char *path, const char *digest,
                                       struct phema_error *err);

/* Finds all parts of PATH and checks that they are done and agree. Nothing changes until the
 * commit, which publishes PATH and removes the markers.
 * PHEMA_NO          some parts are not done; the message names them
 * PHEMA_ERR_OUTPUT  there are no parts; PATH exists and must not be replaced; parts disagree with
 *                   each other or with PATH.partial */
struct phema_writer_join;
PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err);
const char *phema_writer_join_path(const struct phema_writer_join *join);

/* Bytes that parts have written, from the end of the block before. */
struct phema_writer_check_block {
    uint32_t crc;                   /* CRC-32 of the bytes */
    uint32_t first_part, last_part; /* that have written to it, from 1; 0: none */
    uint32_t share;                 /* the caller's number of a process that compares it */
};
#define PHEMA_CHECK_NOT UINT32_MAX /* no process compares it */

/* The blocks of an output that is not published yet, for processes that compare them together. They
 * need neither markers nor directories. Borrows all from the join, or from the packer's arena. */
struct phema_writer_check {
    const char *path; /* of the file or directory that holds the bytes */
    int descriptor;   /* of path; -1: it is opened */
    const struct phema_writer_part_file *files;
    size_t n_files;
    uint64_t block_bytes;
    struct phema_writer_frames frames;       /* of a compressed output: the blocks of its content */
    struct phema_writer_check_block *blocks; /* [n_blocks] of all files */
    size_t n_blocks;
    const struct join_place *places; /* that the join fills in later */
    size_t n_places;
};

/* All blocks are of share 0, except those of which a part's compressed frame is published. No blocks
 * where nothing can be compared. Comes before phema_writer_join_compress and the commit. */
PHEMA_FALLIBLE phema_writer_join_list_blocks(struct phema_writer_check *out,
                                             struct phema_writer_join *join,
                                             struct phema_error *err);
/* Sends the list, or receives it without the numbers of parts. */
void phema_writer_check_pack(struct phema_writer_check *check, struct phema_packer *packer);
/* Compares the blocks of a share with the file, on all CPUs.
 *   differs  [n_blocks] out: 1 for those that differ; others stay
 * PHEMA_ERR_OUTPUT  a file cannot be read */
PHEMA_FALLIBLE phema_writer_check_compare(uint64_t *differs, const struct phema_writer_check *check,
                                          uint32_t share, struct phema_error *err);
/* Checks what was compared, and that digits are where digests will be written.
 * PHEMA_ERR_OUTPUT  a block differs; the message names the parts. Nothing was changed */
PHEMA_FALLIBLE phema_writer_join_check(const struct phema_writer_join *join,
                                       const struct phema_writer_check *check,
                                       const uint64_t *differs, struct phema_error *err);

/* The first part that an earlier version has written, without checksums, so that the check compares
 * nothing; or 0. */
uint64_t phema_writer_join_unchecked_part(const struct phema_writer_join *join);
/* Puts the frames of a compressed output together. Does nothing for others. */
PHEMA_FALLIBLE phema_writer_join_compress(struct phema_writer_join *join, struct phema_error *err);
/* Of a compressed output known after that. */
uint64_t phema_writer_join_bytes(const struct phema_writer_join *join);
uint64_t phema_writer_join_n_parts(const struct phema_writer_join *join);
/* Comes after phema_writer_join_compress. Frees the join in any case. A failure before the rename
 * changes nothing. */
PHEMA_FALLIBLE phema_writer_join_commit(struct phema_writer_join *join, struct phema_error *err);
void phema_writer_join_abandon(struct phema_writer_join *join); /* takes NULL */

/* Held by the one of several processes that looks whether all parts are done, and joins them: the
 * file PATH.join, also where the filesystem has no locks. The lock of a process that was killed on
 * this machine is taken over, and one that is empty for a minute.
 * PHEMA_NO          another process holds it, or one of another machine has left it; the message says
 *                   who
 * PHEMA_ERR_OUTPUT  it cannot be created, or is no such file */
struct phema_writer_join_lock;
PHEMA_FALLIBLE phema_writer_join_lock_try(struct phema_writer_join_lock **out, const char *path,
                                          struct phema_error *err);
void phema_writer_join_lock_close(struct phema_writer_join_lock *lock); /* takes NULL */

/* ---- Journal: finished work of an output ---- */

/* PATH.journal, next to its output: a line that identifies the output, then records, each with a
 * checksum. Bytes after the last whole record were torn by a kill and are ignored. The journal is
 * not a lock: its writer holds the lock of the output. */
struct phema_writer_journal;

/* State of a journal before the output is opened. */
enum phema_writer_journal_state {
    PHEMA_WRITER_JOURNAL_ABSENT, /* or not begun, or not a journal */
    PHEMA_WRITER_JOURNAL_OTHER,  /* of another digest */
    PHEMA_WRITER_JOURNAL_OURS
};
/* PHEMA_ERR_OUTPUT: it belongs to another user, or others may write it */
PHEMA_FALLIBLE phema_writer_journal_look(enum phema_writer_journal_state *out, const char *path,
                                         const char *digest, struct phema_error *err);

/* digest: of all that determines the bytes (PHEMA_PART_DIGEST). With resumes a journal of this
 * digest is kept; any other one is replaced. A failure or a signal removes a new journal, unless
 * phema_writer_journal_keep was called.
 * PHEMA_ERR_OUTPUT  the file is not a journal, belongs to another user, or others may write it; the
 *                   journal cannot be created */
PHEMA_FALLIBLE phema_writer_journal_open(struct phema_writer_journal **out, const char *path,
                                         const char *digest, bool resumes, struct phema_error *err);

/* Reads the next record; data is NULL after the last whole one. Borrowed until the next call. */
PHEMA_FALLIBLE phema_writer_journal_next(struct phema_span *out,
                                         struct phema_writer_journal *journal,
                                         struct phema_error *err);

/* Starts again at the first record; all records are to be read again. */
void phema_writer_journal_again(struct phema_writer_journal *journal);

/* Appends a record of at most PHEMA_MAX_JOURNAL_RECORD bytes, after all records were read. Nothing
 * is synced: a run that resumes must check each record against the output. */
#define PHEMA_MAX_JOURNAL_RECORD ((size_t)16 << 20)
PHEMA_FALLIBLE phema_writer_journal_append(struct phema_writer_journal *journal,
                                           struct phema_span record, struct phema_error *err);

void phema_writer_journal_keep(struct phema_writer_journal *journal,
                               bool keeps); /* as phema_writer_keep */
/* Removes the file, unless it is to be kept. Takes NULL. */
void phema_writer_journal_close(struct phema_writer_journal *journal);
/* Removes the journal of an abandoned output; other files are kept. */
void phema_writer_journal_remove(const char *path);
/* Removes OUT.journal of a complete output, whose run was killed after it had published OUT. Does
 * nothing while there is a partial output, of another run. */
void phema_writer_journal_remove_of(const char *output);

/* Finds outputs that have parts: path itself, or else those in the directory path, sorted.
 *   out  [n] paths; array and paths are the caller's. n may be 0. */
PHEMA_FALLIBLE phema_writer_find_parts(char ***out, size_t *n, const char *path,
                                       struct phema_error *err);

#endif
