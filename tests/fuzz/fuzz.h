/* fuzz.h - common parts of the fuzz targets: inputs as files, and the promises of public headers.
 * An input that is a checkpoint is opened, and every listed tensor is read at its place. A broken
 * promise aborts. */
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

/* An empty directory of this process below TMPDIR or in memory, the same at each call. It is
 * removed with its contents at exit. */
const char *fuzz_directory(void);
/* Writes a file of these bytes there. Returns its path, valid until the next call. */
const char *fuzz_store(const char *name, const uint8_t *data, size_t size);

void fuzz_require(bool is_kept, const char *promise);
/* One line that begins with the path. */
void fuzz_require_message(const struct phema_error *err, const char *path);

#endif
