// SPDX-License-Identifier: Apache-2.0
/* replay.c - runs a fuzz target over files and directories without a fuzzer, under any compiler. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

static size_t n_run;

static int run_file(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind != FTW_F)
        return 0;
    size_t size = (size_t)st->st_size;
    uint8_t *data = malloc(size + 1);
    FILE *file = fopen(path, "rb");
    if (!data || !file || fread(data, 1, size, file) != size) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    n_run++;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (nftw(argv[i], run_file, 16, FTW_PHYS)) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
    }
    (void)printf("%zu inputs\n", n_run);
    return n_run ? EXIT_SUCCESS : EXIT_FAILURE;
}
