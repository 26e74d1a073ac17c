/* fuzz.h - an input as a checkpoint: put into a memory file, opened, and whatever was listed is
 * touched where it is said to lie. */
#ifndef PHEMA_TESTS_FUZZ_H
#define PHEMA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opens the bytes as a file; aborts when a promise of the door is broken. */
void fuzz_open(const uint8_t *data, size_t size);

#endif
