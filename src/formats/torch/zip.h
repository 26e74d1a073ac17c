/* zip.h - The central directory of a zip file as torch writes it: stored records, mapped in
 * place. */
#ifndef FORMATS_TORCH_ZIP_H
#define FORMATS_TORCH_ZIP_H

#include "name_table.h"
#include "phema/formats.h"
#include "phema/span.h"

struct zip_entry {
    const char *name; /* in the mapped file, without a final NUL */
    size_t name_size;
    uint16_t flags, method;
    uint64_t header; /* offset of the local header */
    uint64_t offset; /* of the data */
    uint64_t stored_size, size;
    uint64_t end; /* of data and descriptor */
    uint32_t crc;
    uint64_t central;        /* offset of the entry in the directory */
    uint64_t descriptor_crc; /* offset of the CRC in the descriptor; 0: no descriptor */
};

struct zip_archive {
    struct phema_span content;
    struct zip_entry *entries;
    size_t n_entries;
    struct name_table names;
};

/* Reads and checks the whole directory: names, places, local headers, no overlaps. Refuses more
 * than max_entries before it reads any. */
PHEMA_FALLIBLE zip_open(struct zip_archive *zip, struct phema_span content, uint64_t max_entries,
                        struct phema_error *err);
void zip_close(struct zip_archive *zip);

/* An entry by name, or NULL. */
const struct zip_entry *zip_find(const struct zip_archive *zip, const char *name, size_t size);

/* Puts "record 'NAME': " before the message. */
enum phema_status zip_fail_in(struct phema_error *err, enum phema_status status,
                              const struct zip_entry *entry);

/* The offsets of the entry's CRC, which is the same in all places: in the directory, in the
 * descriptor if there is one, and in the local header unless that leaves it to the descriptor.
 * Returns their number, 2 or 3. */
unsigned zip_find_crcs(uint64_t places[PHEMA_RECORD_CRCS], const struct zip_archive *zip,
                       const struct zip_entry *entry);

/* True when the bytes are neither compressed nor encrypted. */
bool zip_is_stored(const struct zip_entry *entry);

/* PHEMA_ERR_FILE  the entry is compressed and so cannot be mapped */
PHEMA_FALLIBLE zip_check_stored(const struct zip_entry *entry, struct phema_error *err);

#endif
