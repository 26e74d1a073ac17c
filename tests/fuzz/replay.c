// SPDX-License-Identifier: Apache-2.0
/* replay.c - runs a fuzz target over files and directories without a fuzzer, under any compiler.
 *   fuzz_replay zstd FILE|DIRECTORY... */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "phema/span.h"

#define TARGET(name) int fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS
#undef TARGET

static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) {#name, fuzz_##name},
    FUZZ_TARGETS
#undef TARGET
};

static const struct target *target;
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
    (void)target->run(data, size);
    free(data);
    n_run++;
    return 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(targets); i++)
        if (strcmp(targets[i].name, argv[1]) == 0)
            target = &targets[i];
    if (!target) {
        (void)fprintf(stderr, "fuzz_replay: expected one of the fuzz targets, found '%s'\n",
                      argc > 1 ? argv[1] : "");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (nftw(argv[i], run_file, 16, FTW_PHYS)) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
    }
    (void)printf("%zu inputs\n", n_run);
    return n_run ? EXIT_SUCCESS : EXIT_FAILURE;
}
