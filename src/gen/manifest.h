/* manifest.h - what stands beside snapshots that are not all power functions: the manifest, which
 * lists them with their profiles, and the tables it refers to. */
#ifndef GEN_MANIFEST_H
#define GEN_MANIFEST_H

#include "options.h"
#include "phema/strbuf.h"

#define GEN_MANIFEST "manifest.json"

/* Some snapshot is no power function. */
bool gen_needs_manifest(const struct gen_request *request);

/* Check the text before its use. */
void gen_write_manifest(struct phema_strbuf *text, const struct gen_request *request);
/* Lines "step beta", as profiles table:FILE have them. */
void gen_write_table(struct phema_strbuf *text, const struct phema_betas *betas);

/* The kind's table is listed in the manifest under the kind's name, as a file beside it. */
bool gen_has_table(const struct gen_kind *kind);

/* "snapshot-0001000-ema2000.safetensors" */
void gen_put_file_name(struct phema_strbuf *text, const struct gen_item *item);

#endif
