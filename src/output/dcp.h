/* dcp.h - the bytes of a distributed checkpoint (docs/formats/dcp.md): the zip of a piece, and
 * .metadata. Shares no code with the reader, so that one checks the other. */
#ifndef OUTPUT_DCP_H
#define OUTPUT_DCP_H

#include "phema/output.h"
#include "phema/strbuf.h"

/* Zips begin at multiples of this in their file, and their data in the zip. torch aligns
 * neither. */
#define DCP_ALIGNMENT 64u

/* A dtype in torch. NULL: torch has no such dtype. */
const char *dcp_dtype_name(enum phema_dtype dtype);

/* The zip of one tensor without its data. Its size depends on dtype and shape only. Clear bytes. */
struct dcp_frame {
    struct phema_strbuf bytes; /* emptied and filled again by dcp_frame_make */
    size_t data_at;            /* so many of them stand before the data, the others after it */
    uint64_t crc_at[2];        /* in the zip: the checksum of the data in its two headers */
    uint64_t zip_bytes;        /* with the data */
};

/* crc: of the data. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE dcp_frame_make(struct dcp_frame *frame, enum phema_dtype dtype,
                              const uint64_t *shape, unsigned rank, uint32_t crc,
                              struct phema_error *err);

/* Appends the pickle .metadata.
 *   tensors     [n] as written
 *   pieces      all boxes, in the order of the tensors
 *   file_names  of the files that pieces count */
void dcp_metadata_write(struct phema_strbuf *text, const struct phema_tensor *tensors, size_t n,
                        const struct phema_piece *pieces, const size_t *first_piece,
                        const struct phema_output_file *files);

#endif
