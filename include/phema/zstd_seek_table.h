/* zstd_seek_table.h - the table at the end of a file in the seekable format of zstd
 * (contrib/seekable_format): a skippable frame of a head, an entry for each frame, and a footer. */
#ifndef PHEMA_ZSTD_SEEK_TABLE_H
#define PHEMA_ZSTD_SEEK_TABLE_H

#define ZSTD_SEEK_HEAD_MAGIC     0x184D2A5Eu
#define ZSTD_SEEK_HEAD_BYTES     8u /* magic number and size */
#define ZSTD_SEEK_ENTRY_BYTES    8u /* compressed and content size; 4 more for a checksum */
#define ZSTD_SEEK_CHECKSUM_BYTES 4u
#define ZSTD_SEEK_FOOTER_BYTES   9u /* number of entries, descriptor, magic number */
#define ZSTD_SEEK_FOOTER_MAGIC   0x8F92EAB1u

#endif
