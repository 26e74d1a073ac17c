/* text.h - growing text, and names from files made fit for people's eyes. */
#ifndef PHEMA_TEXT_H
#define PHEMA_TEXT_H

#include "phema/error.h"
#include "phema/span.h"

/* Starts as {0}. An append that finds no memory marks the text as failed and later ones do nothing:
 * check once, at the end, with phema_text_check. */
struct phema_text {
    char *data; /* NUL-terminated once anything was appended, or NULL */
    size_t size;
    size_t capacity;
    bool is_failed;
};

void phema_text_clear(struct phema_text *text); /* frees; the text is {0} again */
void phema_text_append(struct phema_text *text, const char *data, size_t size);
void phema_text_puts(struct phema_text *text, const char *string);
void phema_text_printf(struct phema_text *text, const char *format, ...) PHEMA_PRINTF(2, 3);
/* A whole sentence for a terminal: control characters and bytes that are not UTF-8 are escaped, so
 * that no name of a file in it can move the cursor; quotes and backslashes stay. */
void phema_text_puts_shown(struct phema_text *text, const char *string);
PHEMA_FALLIBLE phema_text_check(const struct phema_text *text, struct phema_error *err);

/* A name as a message or a table may show it: control characters, quotes and backslashes escaped,
 * bytes that are not UTF-8 as \xNN, cut with "..." after max_shown bytes. Returns buffer. */
#define PHEMA_NAME_SHOWN 256
struct phema_name_buffer {
    char text[PHEMA_NAME_SHOWN + 8];
};
const char *phema_name_shown(struct phema_name_buffer *buffer, const char *name, size_t size);

/* true when there is something before the end */
bool phema_ends_with(const char *string, const char *end);

bool phema_is_utf8(const char *data, size_t size);

/* The shortest decimal that reads back as the same double: 0.1, 4096, 1.5e-09. */
const char *phema_number_shown(struct phema_name_buffer *buffer, double value);

/* "1.5 GiB", "96 B": at most three digits that matter. */
const char *phema_size_shown(struct phema_name_buffer *buffer, uint64_t size_bytes);

/* The same rounded up: as a size that is asked for it is enough. */
const char *phema_size_enough(struct phema_name_buffer *buffer, uint64_t size_bytes);

#endif
