/* fuzz.h - what fuzz targets share: inputs as files, and the promises of public headers. An input
 * that is a checkpoint is opened, and whatever was listed is touched where it is said to lie. A
 * promise that is broken aborts. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opens the bytes as a file in memory. */
void fuzz_open(const uint8_t *data, size_t size);
void fuzz_open_path(const char *path);

/* An empty directory of this process, the same at each call, below TMPDIR or in memory; removed
 * with all in it at exit. */
const char *fuzz_directory(void);
/* A file of these bytes there; returns its path, good until the next call. */
const char *fuzz_store(const char *name, const uint8_t *data, size_t size);

void fuzz_require(bool is_kept, const char *promise);
/* One line, which begins with the path. */
void fuzz_require_message(const struct phema_error *err, const char *path);

#endif
