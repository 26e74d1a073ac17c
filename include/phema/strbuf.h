/* strbuf.h - growing strings, and escaping of names from files for messages. */
#ifndef PHEMA_STRBUF_H
#define PHEMA_STRBUF_H

#include "phema/error.h"
#include "phema/span.h"

/* Starts as {0}. An append without memory marks the text as failed, and later ones do nothing:
 * check once, at the end, with phema_strbuf_check. */
struct phema_strbuf {
    char *data; /* NUL-terminated once anything was appended, or NULL */
    size_t size;
    size_t capacity;
    bool is_failed;
};

void phema_strbuf_clear(struct phema_strbuf *text); /* frees; the text is {0} again */
/* Clears a text of which another was made; where it has failed, the whole has failed too. */
void phema_strbuf_clear_part(struct phema_strbuf *part, struct phema_strbuf *whole);
void phema_strbuf_append(struct phema_strbuf *text, const char *data, size_t size);
void phema_strbuf_append_u64(struct phema_strbuf *text, uint64_t number); /* little-endian */
void phema_strbuf_puts(struct phema_strbuf *text, const char *string);
void phema_strbuf_printf(struct phema_strbuf *text, const char *format, ...) PHEMA_PRINTF(2, 3);
/* Appends a word of a command. Plain words stay as they are, others get single quotes, which sh,
 * bash, zsh and fish read alike. */
void phema_strbuf_put_word(struct phema_strbuf *text, const char *word);
/* The same of an operand, which must not be read as an option: "./-run" for "-run". */
void phema_strbuf_put_operand(struct phema_strbuf *text, const char *path);
/* Appends a message for a terminal. Control characters and bytes that are not UTF-8 become \xNN,
 * characters of phema_hidden_length \uNNNN or \UNNNNNNNN. No file name can then move the cursor or
 * change the direction of text. Quotes and backslashes stay. */
void phema_strbuf_puts_escaped(struct phema_strbuf *text, const char *string);
/* The same for several lines: line feeds and tabs stay too. */
void phema_strbuf_append_lines(struct phema_strbuf *text, const char *data, size_t size);
/* Appends text of HTML or XML: those of <>&"' that are special become references. */
void phema_strbuf_puts_markup(struct phema_strbuf *text, const char *string, const char *special);
PHEMA_FALLIBLE phema_strbuf_check(const struct phema_strbuf *text, struct phema_error *err);

/* A name for a message or a table: as phema_strbuf_puts_escaped, with quotes and backslashes
 * escaped too, cut with "..." after PHEMA_NAME_SHOWN bytes. Returns the text in buffer. */
#define PHEMA_NAME_SHOWN 256
struct phema_name_buffer {
    char text[PHEMA_NAME_SHOWN + 8];
};
const char *phema_name_escape(struct phema_name_buffer *buffer, const char *name, size_t size);
const char *phema_name_show(struct phema_name_buffer *buffer, const char *name); /* of a string */

/* true when string is longer than end and ends with it */
bool phema_ends_with(const char *string, const char *end);

bool phema_is_utf8(const char *data, size_t size);

/* Bytes of the character at data, or 0 if messages may hold it. They may hold no C1 control, no
 * invisible character, and none that changes the direction of text. point: out, its code point. */
size_t phema_hidden_length(uint32_t *point, const char *data, size_t size);

/* Bytes as ASCII, for paths that are not UTF-8: letters, digits and -._~/:,+@= stay, every other
 * byte is %NN. */
void phema_strbuf_puts_percent(struct phema_strbuf *text, const char *string);
/* out: the caller's, strlen(string) + 1 bytes. false: a % without two hexadecimal digits, or %00 */
bool phema_percent_decode(char *out, const char *string);

/* The shortest decimal that reads back as the same double: 0.1, 4096, 1.5e-09. */
const char *phema_number_format(struct phema_name_buffer *buffer, double value);

/* "1.5 GiB", "96 B": at most three significant digits. */
const char *phema_size_format(struct phema_name_buffer *buffer, uint64_t size_bytes);

/* The same rounded up: a limit of this size suffices. */
const char *phema_size_enough(struct phema_name_buffer *buffer, uint64_t size_bytes);

#endif
