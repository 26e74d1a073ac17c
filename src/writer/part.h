/* part.h - private to writer/: the marker files that tell how far each part of an output is. */
#ifndef WRITER_PART_H
#define WRITER_PART_H

#include "part_blocks.h"
#include "phema/writer.h"

/* ---- Names: PATH.part-I-of-N ---- */

struct part_marker_name {
    char *base; /* name of the output, before ".part-" */
    uint64_t part, n_parts;
};

struct part_marker_list {
    struct part_marker_name *items; /* [n] by base, then number of parts, then part */
    size_t n;
};

/* "dir/out.safetensors.part-2-of-8"; the caller's, NULL without memory. path has no slash at its
 * end. */
char *part_marker_path(const char *path, uint64_t part, uint64_t n_parts);

/* "dir/out.safetensors.zst.plain.partial", the content of a compressed output, and
 * "dir/out.safetensors.zst.part-2-of-8.frames", of a marker; as above. */
char *part_plain_path(const char *path);
char *part_frames_path(const char *marker_path);

/* The markers of path. Empty where its directory does not exist. */
PHEMA_FALLIBLE part_marker_list_make(struct part_marker_list *out, const char *path,
                                     struct phema_error *err);
void part_marker_list_clear(struct part_marker_list *list);

/* PHEMA_ERR_OUTPUT when there are parts of path, done or under way: an ordinary run must not
 * replace them. */
PHEMA_FALLIBLE writer_check_no_parts(const char *path, struct phema_error *err);

/* ---- Contents and lock ---- */

enum part_marker_state {
    MARKER_ABSENT,
    MARKER_UNFINISHED, /* its run has just begun, or was ended before its end */
    MARKER_RUNNING,    /* locked */
    MARKER_DONE
};

struct part_marker_file {
    char *name;
    uint64_t size_bytes;
};

/* The compressed frames of one part, one after the other in a file of its own. */
struct phema_writer_part_frames {
    uint64_t size_bytes, hash; /* of the file: phema_hash_at of all frames, added up */
    uint32_t *sizes;           /* [number of frames]; 0: not compressed by this part */
    size_t n;                  /* of sizes in a marker that was read: up to the last frame */
};

struct part_marker {
    enum part_marker_state state;
    char digest[PHEMA_PART_DIGEST]; /* "" where nothing is written yet */
    bool is_directory;
    struct part_marker_file *files; /* [n_files] by name; of a file one without a name */
    size_t n_files;
    uint64_t sidecar_bytes; /* 0: the output has no PATH.json */
    char *sidecar;          /* [sidecar_bytes] in the first part's marker; NULL in others */
    size_t sums_file;
    struct phema_writer_part_sum *sums; /* [n_sums] of a part that is done, by ascending offsets */
    size_t n_sums;
    struct phema_writer_part_crc *crcs; /* [n_crcs] of a part that is done */
    size_t n_crcs;
    struct part_marker_blocks blocks; /* of a part that is done */
    bool is_compressed, verifies;
    struct phema_writer_part_frames frames; /* of a part that is done */
    struct phema_writer_frames
        all_frames; /* of the whole output; ends in the first part's marker */
    uint64_t inode; /* of PATH.partial, which identifies PATH after a join; 0: unknown */
};

/* *out: zeros before, and where the marker is absent. PHEMA_ERR_OUTPUT when it cannot be read or is
 * not a marker of this program. */
PHEMA_FALLIBLE part_marker_read(struct part_marker *out, const char *path, struct phema_error *err);
void part_marker_clear(struct part_marker *marker);

/* Replaces the contents. */
PHEMA_FALLIBLE part_marker_write(int descriptor, const char *path,
                                 const struct phema_writer_part_options *options,
                                 const struct part_blocks *blocks,
                                 const struct phema_writer_part_frames *frames, uint64_t inode,
                                 bool is_done, struct phema_error *err);

/* ---- part_drop.c ---- */

/* Removes the marker of a part that is in the output of this inode, its journal and with has_frames
 * its frames. Another team may have written the part again since, or hold the marker: it stays. */
PHEMA_FALLIBLE part_marker_remove(const char *path, uint64_t inode, bool has_frames,
                                  struct phema_error *err);

/* ---- part_frames.c: of compressed outputs ---- */

struct phema_json;
struct phema_json_out;

/* object: "frames" of the marker, whose files are read already; NULL: not compressed. PHEMA_NO:
 * incomplete. */
PHEMA_FALLIBLE part_frames_read(struct part_marker *marker, const struct phema_json *object,
                                struct phema_error *err);
void part_frames_write(struct phema_json_out *out, const struct phema_writer_part_options *options,
                       const struct phema_writer_part_frames *frames, bool is_done);

#endif
