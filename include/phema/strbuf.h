/* strbuf.h - growing text, and names from files made fit for people's eyes. */
#ifndef PHEMA_STRBUF_H
#define PHEMA_STRBUF_H

#include "phema/error.h"
#include "phema/span.h"

/* Starts as {0}. An append that finds no memory marks the text as failed and later ones do nothing:
 * check once, at the end, with phema_strbuf_check. */
struct phema_strbuf {
    char *data; /* NUL-terminated once anything was appended, or NULL */
    size_t size;
    size_t capacity;
    bool is_failed;
};

void phema_strbuf_clear(struct phema_strbuf *text); /* frees; the text is {0} again */
void phema_strbuf_append(struct phema_strbuf *text, const char *data, size_t size);
void phema_strbuf_puts(struct phema_strbuf *text, const char *string);
void phema_strbuf_printf(struct phema_strbuf *text, const char *format, ...) PHEMA_PRINTF(2, 3);
/* A whole sentence for a terminal: control characters and bytes that are not UTF-8 become \xNN,
 * what phema_hidden_length finds \uNNNN or \UNNNNNNNN, so that no name of a file in it can move the
 * cursor or turn the text; quotes and backslashes stay. */
void phema_strbuf_puts_escaped(struct phema_strbuf *text, const char *string);
/* The same of several lines: line feeds and tabs stay as well. */
void phema_strbuf_append_lines(struct phema_strbuf *text, const char *data, size_t size);
PHEMA_FALLIBLE phema_strbuf_check(const struct phema_strbuf *text, struct phema_error *err);

/* A name as a message or a table may show it: as phema_strbuf_puts_escaped, quotes and backslashes
 * escaped as well, cut with "..." after PHEMA_NAME_SHOWN bytes. Returns buffer. */
#define PHEMA_NAME_SHOWN 256
struct phema_name_buffer {
    char text[PHEMA_NAME_SHOWN + 8];
};
const char *phema_name_escape(struct phema_name_buffer *buffer, const char *name, size_t size);

/* true when there is something before the end */
bool phema_ends_with(const char *string, const char *end);

bool phema_is_utf8(const char *data, size_t size);

/* Bytes of the character at data when it is one that no message may hold: a C1 control, an
 * invisible character, or one that changes the direction of text. Else 0. point: out, its code
 * point. */
size_t phema_hidden_length(uint32_t *point, const char *data, size_t size);

/* Bytes as ASCII, for paths that are not UTF-8: letters, digits and -._~/:,+@= stay, every other
 * byte is %NN. */
void phema_strbuf_puts_percent(struct phema_strbuf *text, const char *string);
/* out: the caller's, strlen(string) + 1 bytes. false: a % without two hexadecimal digits, or %00 */
bool phema_percent_decode(char *out, const char *string);

/* The shortest decimal that reads back as the same double: 0.1, 4096, 1.5e-09. */
const char *phema_number_format(struct phema_name_buffer *buffer, double value);

/* "1.5 GiB", "96 B": at most three digits that matter. */
const char *phema_size_format(struct phema_name_buffer *buffer, uint64_t size_bytes);

/* The same rounded up: as a size that is asked for it is enough. */
const char *phema_size_enough(struct phema_name_buffer *buffer, uint64_t size_bytes);

#endif
