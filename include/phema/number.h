/* number.h - numbers as users write them: with suffixes k K M G T Ki Mi Gi Ti. */
#ifndef PHEMA_NUMBER_H
#define PHEMA_NUMBER_H

#include "phema/error.h"
#include "phema/span.h"

/* "0.1", "20k", "1e9", "inf" only with a sign, "nan". PHEMA_ERR_USAGE names the text. */
PHEMA_FALLIBLE phema_number_parse(double *out, const char *text, struct phema_error *err);

/* A whole number of 0 or more, below 2^53; "2.6B" is 2.6 billion. */
PHEMA_FALLIBLE phema_count_parse(uint64_t *out, const char *text, struct phema_error *err);

/* Bytes, below 2^53: "512M", "1.5GiB", "1e9", "0"; a B may follow. Decimals are exact, and a
 * fraction of a byte is dropped. A size above 0 and below one byte is refused. */
PHEMA_FALLIBLE phema_size_parse(uint64_t *out, const char *text, struct phema_error *err);

/* A decimal number, nan or inf, as programs print them: no suffix, no blanks, below 64 characters.
 * false for anything else. */
bool phema_decimal_parse(double *out, struct phema_span text);

/* Scores by width, as search keeps them and plot draws them. Their differences must be finite. The
 * word stands in place of a width for the newest snapshot, which is no average. */
#define PHEMA_LARGEST_SCORE 1e100
#define PHEMA_NEWEST_WIDTH  "newest"

#endif
