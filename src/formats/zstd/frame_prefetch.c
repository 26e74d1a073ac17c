// SPDX-License-Identifier: Apache-2.0
/* frame_prefetch.c - Requests the pages of headers before frame_index.c walks over them, those of
 * many frames at once. */
#include "zstd/frame_prefetch.h"

#include "format.h"
#include "zstd/frame_header.h"

/* Chains of headers that are followed at once; least and most bytes that are read of a header. */
enum { MAX_CHAINS = 64, LEAST_BYTES = 4, HEADER_BYTES = 14, PAGE_BYTES = 4096 };

/* The next header in [at, end) of the file: that of a frame, or inside one that of a block. */
struct chain {
    uint64_t at, end;
    bool is_inside, has_checksum;
};

/* Goes on to the next header. false: there is none, or it is damaged. */
static bool step(struct chain *chain, struct phema_span bytes)
{
    struct phema_span rest = {bytes.data + chain->at, (size_t)(chain->end - chain->at)};
    struct zstd_frame_header header = {0};
    struct phema_error ignored;
    uint32_t start = phema_load_u32(rest.data);
    if (chain->is_inside) {
        bool is_last = start & 1, is_repeated = (start >> 1 & 3) == 1;
        chain->at += 3 + (is_repeated ? 1 : (start & 0xFFFFFFu) >> 3);
        chain->at += is_last && chain->has_checksum ? 4 : 0;
        chain->is_inside = !is_last;
    } else if (zstd_is_skippable(start)) {
        if (rest.size < 8)
            return false;
        chain->at += 8 + (uint64_t)phema_load_u32(rest.data + 4);
    } else {
        if (!zstd_is_data(start) || zstd_read_frame_header(&header, rest, chain->at, &ignored))
            return false;
        chain->at += header.size;
        chain->is_inside = true;
        chain->has_checksum = header.has_checksum;
    }
    return chain->at + LEAST_BYTES <= chain->end;
}

/* Goes on to the next header in another page. */
static bool leave_page(struct chain *chain, struct phema_span bytes)
{
    for (uint64_t page = chain->at / PAGE_BYTES; chain->at / PAGE_BYTES == page;)
        if (!step(chain, bytes))
            return false;
    return true;
}

static void follow_all(const struct phema_file *file, struct chain *chains, size_t n)
{
    while (n) {
        size_t n_left = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t left = chains[i].end - chains[i].at;
            phema_file_prefetch(file, chains[i].at, left < HEADER_BYTES ? left : HEADER_BYTES);
        }
        for (size_t i = 0; i < n; i++)
            if (leave_page(&chains[i], phema_file_span(file)))
                chains[n_left++] = chains[i];
        n = n_left;
    }
}

void zstd_frames_prefetch(const struct phema_file *file)
{
    struct phema_span bytes = phema_file_span(file);
    struct chain chains[MAX_CHAINS] = {{.end = bytes.size}};
    size_t n = 0, n_chains = 0, entry_size = 0;
    if (bytes.size < LEAST_BYTES || (!zstd_is_data(phema_load_u32(bytes.data)) &&
                                     !zstd_is_skippable(phema_load_u32(bytes.data))))
        return;
    const uint8_t *entries = zstd_find_seek_table(&n, &entry_size, bytes);
    if (!entries) {
        follow_all(file, chains, 1);
        return;
    }
    phema_file_prefetch(file, (uint64_t)(entries - bytes.data), (uint64_t)n * entry_size);
    uint64_t at = 0, end = 0;
    for (size_t i = 0; i < n && end <= bytes.size; i++, at = end) {
        end = at + phema_load_u32(entries + i * entry_size);
        if (end <= bytes.size && end - at >= LEAST_BYTES)
            chains[n_chains++] = (struct chain){.at = at, .end = end};
        if (n_chains == MAX_CHAINS) {
            follow_all(file, chains, n_chains);
            n_chains = 0;
        }
    }
    follow_all(file, chains, n_chains);
}
