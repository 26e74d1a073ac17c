/* render.h - the result on standard output, messages on standard error. */
#ifndef PHEMA_RENDER_H
#define PHEMA_RENDER_H

#include "phema/json.h"
#include "phema/strbuf.h"

/* What the user wants to see, and as what. */
struct render_style {
    bool is_quiet, is_verbose, is_json;
    bool is_mute; /* warnings are said elsewhere: by another process, or by the caller */
    enum progress_style {
        PROGRESS_AUTO,
        PROGRESS_BAR,
        PROGRESS_PLAIN,
        PROGRESS_JSON,
        PROGRESS_NONE
    } progress;
    struct phema_strbuf *warnings; /* said so far, each ended by a NUL; NULL: not kept */
};

/* Prints the result, lines for people or JSON, and clears the text. No character in it can move the
 * cursor or turn the text.
 * PHEMA_ERR_OUTPUT  not all of it could be written */
PHEMA_FALLIBLE render_print(struct phema_strbuf *text, struct phema_error *err);

/* Paths that scripts read are written with their own bytes, unless stdout is a terminal. */
void render_write_path(struct phema_strbuf *out, const char *path);
/* Whether anything was printed. */
bool render_has_printed(void);
PHEMA_FALLIBLE render_print_as_is(struct phema_strbuf *text, struct phema_error *err);

/* The object of a result, with its version, and its end. */
void render_json_begin(struct phema_json_out *out, struct phema_strbuf *text, bool is_pretty);
void render_json_end(struct phema_json_out *out);

/* A line on stderr, broken at words where the terminal is narrower, or at 80 columns. Names in it
 * are escaped as phema_strbuf_puts_escaped does. */
void render_say(const char *format, ...) PHEMA_PRINTF(1, 2);
/* The same for a line that somebody copies or a program reads: never broken. */
void render_say_whole(const char *format, ...) PHEMA_PRINTF(1, 2);
/* ---- Warnings ---- */

/* A warning says that the result may not be what was asked for, or that its error is large or
 * unknown. All other messages are about the run, and --quiet leaves them out. */

/* "warning: ..." on stderr, with --quiet as well; also a sentence of "warnings" in the JSON of the
 * result. The same sentence is said once. */
void render_warn(const struct render_style *style, const char *format, ...) PHEMA_PRINTF(2, 3);
/* "warnings": [...], those so far. */
void render_write_warnings(struct phema_json_out *out, const struct render_style *style);

#endif
