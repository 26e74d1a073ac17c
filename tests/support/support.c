// SPDX-License-Identifier: Apache-2.0
/* support.c - assertions, files and random elements for unit tests. */
#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void support_assert_ok(enum phema_status status, const struct phema_error *err, const char *file,
                       int line)
{
    if (status != PHEMA_OK) {
        print_error("%s:%d: expected success, got status %d: %s\n", file, line, (int)status,
                    err->message);
        _fail(file, line);
    }
}

void support_assert_fails(enum phema_status status, enum phema_status wanted,
                          const struct phema_error *err, const char *part, const char *file,
                          int line)
{
    if (status != wanted || !strstr(err->message, part)) {
        print_error("%s:%d: expected status %d with \"%s\", got %d: %s\n", file, line, (int)wanted,
                    part, (int)status, err->message);
        _fail(file, line);
    }
}

void support_assert_near(double got, double wanted, double tolerance, const char *file, int line)
{
    if (!(fabs(got - wanted) <= tolerance)) {
        print_error("%s:%d: got %.17g, expected %.17g within %g\n", file, line, got, wanted,
                    tolerance);
        _fail(file, line);
    }
}

static char tmp_path[256];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_tmp(void)
{
    (void)nftw(tmp_path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *support_tmp(void)
{
    if (!tmp_path[0]) {
        /* scripts/test-gpu runs tests where there is no build tree */
        const char *parent = getenv("PHEMA_TEST_TMP");
        parent = parent ? parent : PHEMA_TEST_TMP;
        (void)mkdir(parent, 0777);
        (void)snprintf(tmp_path, sizeof(tmp_path), "%s/XXXXXX", parent);
        assert_non_null(mkdtemp(tmp_path));
        (void)atexit(remove_tmp);
    }
    return tmp_path;
}

static char *join(const char *directory, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    return path;
}

char *support_tmp_path(const char *name)
{
    return join(support_tmp(), name);
}

char *support_fixture(const char *name)
{
    return join(PHEMA_FIXTURES, name);
}

void support_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

uint8_t *support_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        print_error("cannot open %s\n", path);
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long end = ftell(file);
    assert_true(end >= 0);
    rewind(file);
    uint8_t *data = malloc((size_t)end + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)end, file), end);
    data[end] = 0;
    (void)fclose(file);
    *size = (size_t)end;
    return data;
}

uint8_t *support_guarded(const void *data, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (size + page - 1) / page * page;
    uint8_t *map =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + whole, page, PROT_NONE), 0);
    uint8_t *start = map + whole - size;
    if (data)
        memcpy(start, data, size);
    return start;
}

uint64_t support_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Makes an element finite. It becomes a number in [-2, 2], or, for dtypes whose bits are cleared,
 * one with an exponent below the largest. */
static void tame(uint8_t *data, enum phema_dtype dtype, size_t i, uint64_t *state)
{
    double value = (double)(int64_t)support_random(state) * 0x1p-62;
    float single = (float)value;
    if (dtype == PHEMA_F64)
        memcpy(data + 8 * i, &value, 8);
    else if (dtype == PHEMA_F32)
        memcpy(data + 4 * i, &single, 4);
    else if (dtype == PHEMA_F16)
        data[2 * i + 1] &= 0xbb;
    else if (dtype == PHEMA_BF16) /* around 1, because tiny numbers vanish in a sum */
        data[2 * i + 1] = (uint8_t)((data[2 * i + 1] & 0x80) | 0x3f);
    else if (phema_dtype_bits(dtype) == 8)
        data[i] &= 0xbb;
}

void support_fill_numbers(void *out, enum phema_dtype dtype, size_t n, bool is_any_bits,
                          uint64_t *state)
{
    uint8_t *data = out;
    size_t bytes = n * phema_dtype_bits(dtype) / 8;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(support_random(state) >> 30);
    for (size_t i = 0; i < n && !is_any_bits; i++)
        tame(data, dtype, i, state);
}

size_t support_count_threads(void)
{
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));)
        n += entry->d_name[0] != '.';
    assert_int_equal(closedir(tasks), 0);
    return n;
}

void support_assert_threads_become(size_t n)
{
    for (int waits = 0; waits < 10000 && support_count_threads() > n; waits++)
        assert_int_equal(usleep(1000), 0);
    assert_true(support_count_threads() <= n);
}

struct rlimit support_limit_address_space(size_t more_bytes)
{
    struct rlimit before;
    unsigned long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &n_pages), 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = n_pages * (rlim_t)sysconf(_SC_PAGESIZE) + more_bytes;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    return before;
}

void support_restore_address_space(const struct rlimit *before)
{
    assert_int_equal(setrlimit(RLIMIT_AS, before), 0);
}
