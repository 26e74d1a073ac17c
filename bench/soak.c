// SPDX-License-Identifier: Apache-2.0
/* soak.c - hundreds of different runs of the library in one process, as a trainer makes them over
 * weeks. Memory and descriptors must not grow once every kind of run was made. bench/soak calls it;
 * the target bench_soak.
 *   bench_soak SEED RUNS OUT_DIR SERIES... */
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <posthoc-ema.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* There are few different requests, so each is repeated often and must give the same bytes.
 * Rows of the table; the first one is the end of the warm-up. */
enum { N_FORMS = 3, N_WIDTHS = 5, N_DTYPES = 2, MAX_SERIES = 8, N_ROWS = 5 };

/* Free memory is returned to the kernel before each measurement. Holes in the arenas of threads,
 * and cached stacks, still differ by some hundred KiB. A leak of 1 KiB in each of 1500 runs exceeds
 * this. */
enum { MOST_GROWTH_KIB = 512 };

static const char *const forms[N_FORMS] = {"o.safetensors", "o.safetensors.zst", "shards"};
static const char *const dtypes[N_DTYPES] = {NULL, "f32"};
static const char *const ios[] = {"auto", "mmap", "read", "direct"};
static const double widths[N_WIDTHS] = {0.06, 0.08, 0.1, 0.14, 0.2};

struct soak {
    uint64_t random;
    const char *out_dir;
    char *const *series;
    size_t n_series;
    uint64_t hashes[MAX_SERIES][N_FORMS][N_WIDTHS][N_DTYPES]; /* of the bytes; 0: not made yet */
    size_t n_made, n_again, n_refused, n_cancelled;
};

/* Options of one run; its bytes must not depend on io and threads. */
struct wish {
    size_t series, form, width, dtype;
    struct posthoc_ema_run_options run;
};

struct sample {
    size_t n_runs, anonymous_kib, n_fds;
};

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_soak: %s: %s\n", what, why);
    exit(1);
}

static size_t below(struct soak *soak, size_t n) /* xorshift64* */
{
    soak->random ^= soak->random >> 12;
    soak->random ^= soak->random << 25;
    soak->random ^= soak->random >> 27;
    return (size_t)((soak->random * UINT64_C(2685821657736338717)) >> 33) % n;
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        fail(path, "cannot be listed");
    size_t n = 0;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return n;
}

static struct sample sample_process(size_t n_runs)
{
    struct sample sample = {.n_runs = n_runs, .n_fds = count_entries("/proc/self/fd") - 1};
    (void)malloc_trim(0);
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            sample.anonymous_kib = strtoul(line + 8, NULL, 10);
    if (!file || !sample.anonymous_kib)
        fail("/proc/self/status", "does not say RssAnon");
    (void)fclose(file);
    return sample;
}

static void hash_file(uint64_t *hash, const char *path) /* FNV-1a */
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        fail(path, "is not there");
    char bytes[4096];
    for (size_t n = 0; (n = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        for (size_t i = 0; i < n; i++)
            *hash = (*hash ^ (uint8_t)bytes[i]) * UINT64_C(1099511628211);
    (void)fclose(file);
}

/* Hashes an output and removes it; anything left in the directory is an error. */
static uint64_t hash_and_remove(const char *path)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    struct stat info;
    if (stat(path, &info) != 0)
        fail(path, "is not there");
    if (S_ISDIR(info.st_mode)) {
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char file[4096 + 256 + 1]; /* of "path" [4096] */
            (void)snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
            if (entries[i]->d_name[0] != '.') {
                hash_file(&hash, file);
                (void)unlink(file);
            }
            free(entries[i]);
        }
        free(entries);
        (void)rmdir(path);
    } else {
        hash_file(&hash, path);
        (void)unlink(path);
    }
    return hash;
}

static int cancel(void *context, const struct posthoc_ema_progress *progress)
{
    (void)context;
    (void)progress;
    return 1;
}

static struct wish draw(struct soak *soak)
{
    struct wish wish = {.series = below(soak, soak->n_series),
                        .form = below(soak, N_FORMS),
                        .width = below(soak, N_WIDTHS),
                        .dtype = below(soak, N_DTYPES)};
    wish.run = (struct posthoc_ema_run_options){.size = sizeof(wish.run),
                                                .dtype = dtypes[wish.dtype],
                                                .io = ios[below(soak, 4)],
                                                .verifies = below(soak, 2) == 0,
                                                .drops_cache = below(soak, 4) == 0,
                                                .skips_sync = 1,
                                                .threads = 1 + (unsigned)below(soak, 4)};
    if (wish.form == 2)
        wish.run.shard_bytes = 20000;
    switch (below(soak, 8)) { /* failures must free as much as successes */
    case 0:
        wish.run.dtype = "f13";
        break;
    case 1:
        wish.run.progress = cancel;
        break;
    default:
        break;
    }
    return wish;
}

static void check(struct soak *soak, const struct wish *wish, enum posthoc_ema_status status,
                  const char *path, const struct posthoc_ema_error *error)
{
    if (wish->run.dtype && strcmp(wish->run.dtype, "f13") == 0) {
        if (status != POSTHOC_EMA_ERR_USAGE)
            fail("a dtype that there is not", "is not refused");
        soak->n_refused++;
    } else if (wish->run.progress && status == POSTHOC_EMA_CANCELLED) {
        soak->n_cancelled++;
    } else if (status) {
        fail(path, error->message);
    } else {
        uint64_t hash = hash_and_remove(path);
        uint64_t *known = &soak->hashes[wish->series][wish->form][wish->width][wish->dtype];
        if (*known && *known != hash)
            fail(path, "the same wish gives other bytes");
        soak->n_again += *known != 0;
        soak->n_made++;
        *known = hash;
    }
    if (count_entries(soak->out_dir) != 0)
        fail(soak->out_dir, "something is left there");
}

static void run_once(struct soak *soak)
{
    struct posthoc_ema_error error = {""};
    struct posthoc_ema_series *series = NULL;
    struct posthoc_ema_plan *plan = NULL;
    struct wish wish = draw(soak);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", soak->out_dir, forms[wish.form]);

    enum posthoc_ema_status status =
        posthoc_ema_series_open(&series, soak->series[wish.series], NULL, &error);
    if (!status) {
        struct posthoc_ema_plan_options options = {
            .size = sizeof(options), .sigma_rels = &widths[wish.width], .n_sigma_rels = 1};
        status = posthoc_ema_plan_make(&plan, series, &options, &error);
    }
    if (status)
        fail(soak->series[wish.series], error.message);
    status = posthoc_ema_run(plan, path, &wish.run, NULL, &error);
    check(soak, &wish, status, path, &error);
    posthoc_ema_plan_free(plan);
    posthoc_ema_series_close(series);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Compares two rows at each end, because of noise: the larger first one with the smaller last
 * one. */
static bool is_flat(const struct sample *rows)
{
    const struct sample *last = &rows[N_ROWS - 1];
    size_t before = rows[0].anonymous_kib + rows[1].anonymous_kib -
                    least(rows[0].anonymous_kib, rows[1].anonymous_kib);
    size_t behind = least(last[-1].anonymous_kib, last->anonymous_kib);
    bool has_grown = behind > before + MOST_GROWTH_KIB;
    if (last->n_fds != rows[0].n_fds)
        (void)fprintf(stderr, "bench_soak: %zu descriptors became %zu\n", rows[0].n_fds,
                      last->n_fds);
    if (has_grown)
        (void)fprintf(stderr, "bench_soak: memory grew from %zu to %zu KiB\n", before, behind);
    return last->n_fds == rows[0].n_fds && !has_grown;
}

int main(int argc, char **argv)
{
    /* What malloc keeps in an arena for each thread is no leak, but would hide one. */
    (void)mallopt(M_ARENA_MAX, 1);
    if (argc < 5 || argc > 4 + MAX_SERIES) {
        (void)fprintf(stderr, "usage: bench_soak SEED RUNS OUT_DIR SERIES...\n");
        return 2;
    }
    static struct soak soak;
    struct sample rows[N_ROWS] = {{0}};
    size_t n_runs = strtoul(argv[2], NULL, 10);
    soak.random = strtoul(argv[1], NULL, 10) + UINT64_C(0x9E3779B97F4A7C15); /* never 0 */
    soak.out_dir = argv[3];
    soak.series = argv + 4;
    soak.n_series = (size_t)argc - 4;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    printf("| runs in one process | anonymous memory [KiB] | descriptors |\n|---:|---:|---:|\n");
    for (size_t row = 0, done = 0; row < N_ROWS; row++) {
        for (; done < n_runs * (row + 1) / N_ROWS; done++)
            run_once(&soak);
        rows[row] = sample_process(done);
        printf("| %zu | %zu | %zu |\n", done, rows[row].anonymous_kib, rows[row].n_fds);
    }
    printf("\n%zu outputs, %zu of them once more with the same bytes; %zu wishes refused, %zu runs "
           "cancelled.\n",
           soak.n_made, soak.n_again, soak.n_refused, soak.n_cancelled);
    return is_flat(rows) ? 0 : 1;
}
